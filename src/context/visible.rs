//! Which files a summariser may see: those in the folder that the user works in or named, except secrets.
//!
//! A transcript says in which folder it was written and which files it is about. Both are untrusted: they select among
//! the files in the user's own folder, and never extend it. All paths here are canonical, without symbolic links.
//!
//! Invariant: a file that usually contains secrets is never shown, whoever asks. The secrets of agents are known to their
//! formats, and callers must exclude them.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// The files that may be shown; by default none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visible<'a> {
    /// The folder that the user works in or named.
    pub folder: Option<&'a Path>,
    /// True if the user asked for files outside of it too.
    pub outside: bool,
    /// Folders and files of this user that are never shown, in addition to those recognised by name.
    pub hidden: &'a [PathBuf],
}

impl Visible<'_> {
    /// Returns true if any file may be shown for a session, given its working folder if known.
    pub fn admits(&self, session: Option<&Path>) -> bool {
        self.outside
            || self.folder.is_some_and(|folder| {
                session.is_none_or(|at| at.starts_with(folder) || folder.starts_with(at))
            })
    }

    /// Returns true if a file may be shown.
    pub fn shows(&self, file: &Path) -> bool {
        let is_inside = self.folder.is_some_and(|folder| file.starts_with(folder));
        (is_inside || self.outside)
            && !is_secret(file)
            && !self.hidden.iter().any(|hidden| file.starts_with(hidden))
    }
}

/// Folders and files that contain secrets anywhere: a suffix of the path, or of a folder above the file.
const PLACES: [&str; 82] = [
    // Keys, tokens and passwords of programs.
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".dockercfg",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/doctl",
    ".config/rclone",
    ".config/op",
    ".oci",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".boto",
    ".s3cfg",
    ".htpasswd",
    ".git-credentials",
    ".config/git/credentials",
    ".git",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".config/sops",
    ".config/solana",
    ".config/configstore",
    ".config/ngrok",
    ".config/pip",
    ".pip",
    ".fly",
    ".kaggle",
    ".dbt/profiles.yml",
    ".snowsql",
    ".ngrok2",
    ".circleci/cli.yml",
    ".cloudflared",
    ".bundle/config",
    ".flaskenv",
    ".sentryclirc",
    ".databrickscfg",
    ".clasprc.json",
    ".mylogin.cnf",
    ".mysql_login.cnf",
    ".authinfo",
    ".msmtprc",
    // Password stores and keychains.
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/keepassxc",
    "library/keychains",
    // Profiles of browsers and mail programs.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/bravesoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "library/application support/google/chrome",
    "library/application support/firefox",
    "library/cookies",
    "library/safari",
    "snap/firefox",
    "snap/chromium",
    // undertext's own files.
    ".undertext",
    ".local/state/undertext",
    ".local/share/undertext",
    ".config/undertext",
    // Shell history.
    ".local/share/atuin",
];

/// Names of files that contain secrets in any folder.
const NAMES: [&str; 12] = [
    "auth.json",
    "oauth_creds.json",
    "kubeconfig",
    "local.settings.json",
    "wp-config.php",
    ".vault_pass",
    "rclone.conf",
    ".rclone.conf",
    "wallet.dat",
    "nuget.config",
    "pip.conf",
    ".mcp.json",
];

/// Words in the name of a data file that suggest secrets. The source code of a program about passwords does not contain any.
const TELLING: [&str; 10] = [
    "secret",
    "credential",
    "password",
    "passwd",
    "apikey",
    "accesskey",
    "privatekey",
    "deploykey",
    "serviceaccount",
    "adminsdk",
];

/// The extensions of data files, including none.
const DATA: [&str; 22] = [
    "",
    "json",
    "jsonc",
    "json5",
    "yml",
    "yaml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "config",
    "properties",
    "txt",
    "xml",
    "csv",
    "tsv",
    "plist",
    "enc",
    "bak",
    "old",
    "local",
    "dat",
];

/// System folders, as absolute paths.
const SYSTEM: [&str; 10] = [
    "/proc",
    "/sys",
    "/dev",
    "/run/secrets",
    "/var/run/secrets",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
];

/// Prefixes and suffixes of the names of secrets.
const BEGINS: [&str; 8] = [
    ".env",
    ".dev.vars",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "client_secret",
    "service-account",
];
const ENDS: [&str; 28] = [
    ".env",
    ".tfvars",
    ".tfvars.json",
    ".tfstate",
    ".tfstate.backup",
    ".p8",
    ".ovpn",
    ".kubeconfig",
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".ppk",
    ".jks",
    ".keystore",
    ".keychain",
    ".keychain-db",
    ".kdb",
    ".kdbx",
    ".gpg",
    ".pgp",
    ".age",
    ".asc",
    "_history",
    ".zhistory",
    ".histfile",
    ".viminfo",
    ".lesshst",
];

/// Returns true if a file usually contains a secret. Case is ignored, because some file systems ignore it.
pub fn is_secret(file: &Path) -> bool {
    let parts: Vec<String> =
        file.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    let holds = |place: &str| {
        let place: Vec<&str> = place.split('/').collect();
        parts.windows(place.len()).any(|window| window == place)
    };
    let name = file.file_name().map(OsStr::to_string_lossy).unwrap_or_default().to_lowercase();
    let whole = file.to_string_lossy().to_lowercase();
    let is_below = |folder: &&str| Path::new(&whole).starts_with(folder);
    PLACES.into_iter().any(holds)
        || NAMES.contains(&name.as_str())
        || SYSTEM.iter().any(is_below)
        || BEGINS.iter().any(|begin| name.starts_with(begin))
        || ENDS.iter().any(|end| name.ends_with(end))
        || name.contains(".env.")
        || is_told(&name, &parts)
}

/// Returns true for a data file whose name or folder suggests secrets.
fn is_told(name: &str, parts: &[String]) -> bool {
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_part = |c: char| matches!(c, '.' | '-' | '_' | ' ');
    let joined = stem.replace(is_part, "");
    let is_name = TELLING.iter().any(|word| joined.contains(word))
        || stem.split(is_part).any(|word| matches!(word, "token" | "tokens"));
    DATA.contains(&end) && (is_name || parts.iter().any(|part| part == "secrets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_shown_by_the_users_folder_and_never_by_the_transcripts_word() {
        let hidden = [PathBuf::from("/data/state")];
        let at = |folder: &'static str, outside| Visible {
            folder: (!folder.is_empty()).then(|| Path::new(folder)),
            outside,
            hidden: &hidden,
        };
        let check = |visible: Visible<'_>, session: &str, file: &str, expected: bool| {
            let session = (!session.is_empty()).then(|| Path::new(session));
            let shown = visible.admits(session) && visible.shows(Path::new(file));
            assert_eq!(shown, expected, "{visible:?}, {session:?}: {file}");
        };
        let here = at("/home/ann/app", false);
        check(here, "/home/ann/app", "/home/ann/app/src/a.rs", true);
        check(here, "/home/ann/app/src", "/home/ann/app/b.rs", true);
        check(here, "", "/home/ann/app/b.rs", true);
        // A session that says it works above is shown no more than what is here.
        check(here, "/home/ann", "/home/ann/app/b.rs", true);
        check(here, "/", "/home/ann/notes.txt", false);
        check(here, "/home/ann", "/home/ann/other/b.rs", false);
        check(here, "/home/ann/app", "/home/ann/app2/b.rs", false);
        check(here, "/home/ann/other", "/home/ann/app/b.rs", false);
        check(at("", false), "/home/ann/app", "/home/ann/app/b.rs", false);
        let wide = at("/home/ann/app", true);
        check(wide, "/home/ann/other", "/home/ann/other/b.rs", true);
        check(wide, "", "/etc/hosts", true);
        check(at("", true), "", "/etc/hosts", true);
        for visible in [here, wide] {
            check(visible, "/home/ann/app", "/home/ann/app/.env", false);
            check(visible, "/home/ann/app", "/home/ann/.ssh/id_rsa", false);
            check(visible, "/home/ann/app", "/data/state/undertext/trusted", false);
        }
    }

    /// Files that usually hold a secret.
    const SECRET: &[&str] = &[
        "/home/ann/.ssh/config",
        "/Users/ann/.SSH/known_hosts",
        "/home/ann/app/.env",
        "/home/ann/app/.env.local",
        "/home/ann/app/.envrc",
        "/home/ann/app/certs/server.KEY",
        "/home/ann/app/server.pem",
        "/home/ann/app/deploy/id_ed25519.pub",
        "/home/ann/app/Id_Rsa",
        "/home/ann/.gnupg/private-keys-v1.d/x",
        "/home/ann/.aws/credentials",
        "/home/ann/.azure/x",
        "/home/ann/.config/gcloud/x.db",
        "/home/ann/.kube/config",
        "/home/ann/.docker/config.json",
        "/home/ann/.netrc",
        "/home/ann/.npmrc",
        "/home/ann/app/.npmrc",
        "/home/ann/.pypirc",
        "/home/ann/.git-credentials",
        "/home/ann/app/.git/config",
        "/home/ann/.bash_history",
        "/home/ann/.zsh_history",
        "/home/ann/.local/share/fish/fish_history",
        "/home/ann/.codex/auth.json",
        "/srv/codex-home/auth.json",
        "/home/ann/.claude/.credentials.json",
        "/home/ann/.password-store/mail.gpg",
        "/home/ann/keys.kdbx",
        "/home/ann/.local/share/keyrings/login.keyring",
        "/Users/ann/Library/Keychains/login.keychain-db",
        "/Users/ann/Library/Application Support/Google/Chrome/Default/Login Data",
        "/home/ann/.mozilla/firefox/x/logins.json",
        "/home/ann/.config/google-chrome/Default/Cookies",
        "/home/ann/.local/state/undertext/trusted",
        "/home/ann/app/.undertext/config.toml",
        "/etc/shadow",
        "/proc/1/environ",
        "/run/secrets/db",
        "/home/ann/app/prod.env",
        "/home/ann/app/docker.env.local",
        "/home/ann/app/secrets.yml",
        "/home/ann/app/config/db-Secrets.prod.yaml",
        "/home/ann/app/secrets/db.txt",
        "/home/ann/app/infra/terraform.tfvars",
        "/home/ann/app/infra/prod.auto.tfvars.json",
        "/home/ann/app/infra/terraform.tfstate",
        "/home/ann/app/infra/terraform.tfstate.backup",
        "/home/ann/app/service_account.json",
        "/home/ann/app/serviceAccountKey.json",
        "/home/ann/app/x-firebase-adminsdk-1.json",
        "/home/ann/app/gcp-credentials.json",
        "/home/ann/app/passwords.txt",
        "/home/ann/app/api_key.txt",
        "/home/ann/app/token.json",
        "/home/ann/app/AuthKey.p8",
        "/home/ann/app/kubeconfig",
        "/home/ann/app/.dev.vars",
        "/home/ann/app/.dev.vars.production",
        "/home/ann/app/.flaskenv",
        "/home/ann/.sentryclirc",
        "/home/ann/.databrickscfg",
        "/home/ann/.clasprc.json",
        "/home/ann/.mylogin.cnf",
        "/home/ann/.authinfo",
        "/home/ann/.authinfo.gpg",
        "/home/ann/.msmtprc",
        "/home/ann/app/rclone.conf",
        "/home/ann/.config/sops/age/keys.txt",
        "/home/ann/.config/solana/id.json",
        "/home/ann/.bitcoin/wallet.dat",
        "/home/ann/.fly/config.yml",
        "/home/ann/.kaggle/kaggle.json",
        "/home/ann/.dbt/profiles.yml",
        "/home/ann/.snowsql/config",
        "/home/ann/.ngrok2/ngrok.yml",
        "/home/ann/.circleci/cli.yml",
        "/home/ann/.cloudflared/a.json",
        "/home/ann/.config/configstore/firebase-tools.json",
        "/home/ann/app/.bundle/config",
        "/home/ann/app/NuGet.Config",
        "/etc/pip.conf",
        "/home/ann/app/deploy_key",
        "/home/ann/app/.mcp.json",
        "/home/ann/app/backup.age",
        "/home/ann/app/key.asc",
    ];

    #[test]
    fn the_usual_places_of_secrets_are_known_however_they_are_spelt() {
        for path in SECRET {
            assert!(is_secret(Path::new(path)), "{path}");
        }
        let plain = [
            "/home/ann/app/src/env.rs",
            "/home/ann/app/src/keyboard.rs",
            "/home/ann/app/src/credentials.rs",
            "/home/ann/app/docs/history.md",
            "/home/ann/app/.github/workflows/ci.yml",
            "/home/ann/app/.claude/settings.json",
            "/home/ann/app/package.json",
            "/home/ann/app/ssh/mod.rs",
            "/home/ann/dev/app/main.c",
            "/home/ann/app/src/secrets/mod.rs",
            "/home/ann/app/src/password_reset.html",
            "/home/ann/app/docs/secrets.md",
            "/home/ann/app/tokenizer.json",
            "/home/ann/app/environment.yml",
            "/home/ann/app/env.d.ts",
            "/home/ann/app/.circleci/config.yml",
            "/home/ann/app/src/deploy_key.rs",
            "/home/ann/app/infra/main.tf",
            "/etc/hosts",
        ];
        for path in plain {
            assert!(!is_secret(Path::new(path)), "{path}");
        }
    }
}
