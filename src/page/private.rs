//! Private files: environments and keys. A shared document says only how large they are.

/// Endings of files with keys.
const KEYS: [&str; 7] = [".pem", ".key", ".p12", ".pfx", ".keystore", ".jks", ".kdbx"];
/// Names of files with credentials.
const NAMES: [&str; 7] =
    [".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", "credentials.json"];
/// Endings of example files, which are meant to be read.
const EXAMPLES: [&str; 4] = [".example", ".sample", ".template", ".dist"];
/// Commands that print the environment.
const DUMPS: [&str; 4] = ["env", "printenv", "export", "set"];

/// Returns true if a path names a file with an environment or a key.
pub(crate) fn is_private_file(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let is_env = name == ".env" || name.starts_with(".env.") || name == ".envrc";
    let is_key = name.starts_with("id_") && !name.contains('.');
    let is_key =
        is_key && ["rsa", "dsa", "ecdsa", "ed25519"].iter().any(|kind| name.ends_with(kind));
    let is_example = EXAMPLES.iter().any(|end| name.ends_with(end));
    let is_other = KEYS.iter().any(|end| name.len() > end.len() && name.ends_with(end));
    !is_example && (is_env || is_key || is_other || NAMES.contains(&name))
}

/// Returns true if a command prints the environment, or names a private file.
pub(crate) fn is_private_command(command: &str) -> bool {
    let mut is_start = true;
    let mut words = command.split([' ', '\n', '\t']).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let bare = word.trim_matches(|c| "'\"`();<>|&".contains(c));
        let next = words.peek().copied().unwrap_or("|");
        let is_alone =
            word.ends_with([';', '|', '&', ')']) || next.starts_with(['|', '>', '&', ';']);
        let is_dump = is_start && DUMPS.contains(&bare) && (is_alone || next == "-p");
        if is_dump || is_private_file(bare) {
            return true;
        }
        is_start = word.ends_with([';', '|', '&', '(']);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_and_keys_are_recognised_by_name() {
        for path in [".env", "/a/.env.local", "x/.envrc", "tls/server.pem", "~/.ssh/id_ed25519"] {
            assert!(is_private_file(path), "{path}");
        }
        for path in [".env.example", "env.rs", "src/.envoy", "id_ed25519.pub", "key", "a.keys"] {
            assert!(!is_private_file(path), "{path}");
        }
    }

    #[test]
    fn a_command_that_prints_the_environment_is_private() {
        for command in ["env", "printenv | sort", "cd x && env", "cat .env", "export -p", "(env)"] {
            assert!(is_private_command(command), "{command}");
        }
        for command in ["env FOO=1 make", "export A=1", "set -e; make", "cargo test", "ls env"] {
            assert!(!is_private_command(command), "{command}");
        }
    }
}
