//! Describes the folder a session works in: git branch, remote, package. Starts no process.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use crate::disk;

/// A description of the folder where a session works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Its path.
    pub folder: String,
    /// The branch checked out there.
    pub git_branch: Option<String>,
    /// The remote, without credentials.
    pub remote: Option<String>,
    /// The package's name and version.
    pub package: Option<(String, Option<String>)>,
}

impl Workspace {
    /// Returns the description as JSON.
    pub fn describe(&self) -> Value {
        json!({
            "path": self.folder,
            "gitBranch": self.git_branch,
            "remote": self.remote,
            "package": self.package.as_ref().map(|(name, _)| name),
            "packageVersion": self.package.as_ref().and_then(|(_, version)| version.as_ref()),
        })
    }
}

/// Describes a folder. Parts that cannot be read are omitted.
pub fn workspace(folder: &Path) -> Workspace {
    let git = folder.ancestors().find_map(git_folder);
    Workspace {
        folder: folder.to_string_lossy().into_owned(),
        git_branch: git.as_deref().and_then(branch),
        remote: git.as_deref().and_then(remote),
        package: folder.ancestors().find_map(package),
    }
}

const MANIFESTS: [&str; 5] =
    ["package.json", "Cargo.toml", "pyproject.toml", "requirements.txt", "go.mod"];
/// The maximum number of dependencies that are named, and the maximum length of a name.
const DEPENDENCIES: [usize; 2] = [100, 256];

/// Returns the names of the packages that a folder's package depends on, from the nearest folder with a manifest, up to the root
/// of its repository.
pub fn dependencies(folder: &Path) -> Vec<String> {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder);
    let mut within = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let has_manifest = |folder: &&Path| MANIFESTS.iter().any(|name| folder.join(name).is_file());
    let mut names = within.find(has_manifest).map(dependencies_in).unwrap_or_default();
    let [count, length] = DEPENDENCIES;
    names.retain(|name| name.len() <= length);
    names.truncate(count);
    names
}

/// Returns the names in the manifests of one folder.
fn dependencies_in(folder: &Path) -> Vec<String> {
    let [package, cargo, python, requirements, module] =
        MANIFESTS.map(|name| text(&folder.join(name)).unwrap_or_default());
    let json: Value = serde_json::from_str(&package).unwrap_or_default();
    let [cargo, python] = [cargo, python].map(|it| it.parse::<toml::Table>().unwrap_or_default());
    let fields = ["dependencies", "devDependencies"].map(|key| json.get(key)?.as_object());
    let mut names: Vec<String> =
        fields.into_iter().flatten().flat_map(Map::keys).cloned().collect();
    let table = cargo.get("dependencies").and_then(toml::Value::as_table);
    names.extend(table.into_iter().flat_map(toml::Table::keys).cloned());
    let list = python.get("project").and_then(|project| project.get("dependencies")?.as_array());
    let listed = list.into_iter().flatten().filter_map(toml::Value::as_str);
    names.extend(listed.chain(requirements.lines()).filter_map(requirement));
    let mut is_block = false;
    names.extend(module.lines().map(str::trim).filter_map(|line| {
        let alone = line.strip_prefix("require ").map(str::trim);
        is_block = alone == Some("(") || is_block && line != ")";
        let required = alone.or(Some(line).filter(|_| is_block))?;
        required.split_once(' ').map(|(name, _)| name.to_owned()).filter(|name| name != "//")
    }));
    names
}

/// Returns the name that a requirement of Python begins with: `name[extra] >= 1`.
fn requirement(line: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let line = line.trim_start();
    let name = line.split(|c| !is_part(c)).next().unwrap_or_default();
    name.starts_with(|c: char| c.is_ascii_alphanumeric()).then(|| name.to_owned())
}

/// Reads a small file that may come from whoever made the folder.
fn text(path: &Path) -> io::Result<String> {
    disk::read_text(path, disk::SMALL)
}

/// Returns git's own folder, following the `.git` file of a worktree or a submodule.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let named = text(&git).ok()?;
    Some(folder.join(named.strip_prefix("gitdir:")?.trim()))
}

fn branch(git: &Path) -> Option<String> {
    let head = text(&git.join("HEAD")).ok()?;
    let head = head.trim();
    // For a detached head, show the commit.
    let branch = head.strip_prefix("ref: refs/heads/").map(str::to_owned);
    branch.or_else(|| {
        head.get(..12).filter(|id| id.chars().all(|c| c.is_ascii_hexdigit())).map(str::to_owned)
    })
}

fn remote(git: &Path) -> Option<String> {
    let common = text(&git.join("commondir")).ok();
    let config =
        common.map_or_else(|| git.join("config"), |common| git.join(common.trim()).join("config"));
    let config = text(&config).ok()?;
    let mut remotes: Vec<(String, String)> = Vec::new();
    let mut section = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line
                .strip_prefix("[remote \"")
                .and_then(|rest| rest.strip_suffix("\"]"))
                .map(str::to_owned);
        } else if let (Some(name), Some((key, url))) = (&section, line.split_once('='))
            && key.trim() == "url"
        {
            remotes.extend(without_credentials(&unquoted(url)).map(|url| (name.clone(), url)));
        }
    }
    let origin = remotes.iter().find(|(name, _)| name == "origin").or(remotes.first());
    origin.map(|(_, url)| url.clone())
}

/// Returns a URL without credentials: no user, no password, nothing after `?` or `#`. Only
/// `git@host:path` keeps its user. Returns nothing if there is a command in place of a URL.
pub(crate) fn without_credentials(url: &str) -> Option<String> {
    if url.contains(|c: char| c.is_whitespace() || c == '"') {
        return None;
    }
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let is_user = |user: &str| user.contains(':') || !user.contains(['/', '\\']);
    let shown = match rest.rsplit_once('@').filter(|(user, _)| is_user(user)) {
        Some(("git", _)) if scheme.is_empty() => rest,
        Some((_, host)) => host,
        None => rest,
    };
    Some(format!("{scheme}{shown}"))
}

/// Decodes a value from git's config file: removes quotes and resolves escapes.
fn unquoted(value: &str) -> String {
    let mut meant = String::new();
    let mut chars = value.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {}
            '\\' => meant.extend(chars.next()),
            c => meant.push(c),
        }
    }
    meant
}

fn package(folder: &Path) -> Option<(String, Option<String>)> {
    if let Ok(text) = text(&folder.join("package.json")) {
        let package: Value = serde_json::from_str(&text).ok()?;
        let word = |key: &str| package.get(key).and_then(Value::as_str).map(str::to_owned);
        return Some((word("name")?, word("version")));
    }
    for file in ["Cargo.toml", "pyproject.toml"] {
        if let Ok(text) = text(&folder.join(file)) {
            return toml_package(&text);
        }
    }
    None
}

/// Reads name and version from `[package]` or `[project]`, where they are plain strings.
fn toml_package(text: &str) -> Option<(String, Option<String>)> {
    let table: toml::Table = text.parse().ok()?;
    let package = table.get("package").or(table.get("project"))?;
    let word = |key: &str| package.get(key)?.as_str().map(str::to_owned);
    Some((word("name")?, word("version")))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads and writes what it made itself")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_remote_is_shown_without_credentials() {
        let check = |url, shown: &str| {
            assert_eq!(without_credentials(url).unwrap_or_default(), shown, "{url}");
        };
        check("https://user:secret@example.org/a/b.git", "https://example.org/a/b.git");
        check("https://example.org/a@b.git", "https://example.org/a@b.git");
        check("git@example.org:a/b.git", "git@example.org:a/b.git");
        check("ssh://git@example.org", "ssh://example.org");
        check("https://example.org/r?access_token=secret", "https://example.org/r");
        check("https://example.org/r#secret", "https://example.org/r");
        check("https://u:secret/with@slash@example.org/r", "https://example.org/r");
        check("http::https://u:secret@example.org/r", "http::https://example.org/r");
        check("secret@example.org:a/b.git", "example.org:a/b.git");
        check("secret:x@example.org:a/b.git", "example.org:a/b.git");
        check("//u:secret@example.org/r", "example.org/r");
        check("../other", "../other");
        check("ext::sh -c 'curl -u u:secret x'", "");
        assert_eq!(unquoted(" \"https://h/\\\"a\\\\b\" "), "https://h/\"a\\b");
    }

    #[test]
    fn a_package_is_told_by_its_own_strings() {
        let check = |text: &str, expected: Option<(&str, Option<&str>)>| {
            let expected = expected.map(|(name, version)| (name.into(), version.map(Into::into)));
            assert_eq!(toml_package(text), expected, "{text}");
        };
        check("[package]\nname = \"a\" # mine\nversion = '1'", Some(("a", Some("1"))));
        check("[package]\nname = \"a\"\nversion = { workspace = true }", Some(("a", None)));
        check("[package]\nname = \"a\"\nversion.workspace = true", Some(("a", None)));
        check("[build-system]\nname = \"b\"\n[project]\nname = \"a\"", Some(("a", None)));
        check("[dependencies]\nname = \"1\"", None);
        check("[package]\nname = a", None);
    }

    #[test]
    fn the_nearest_manifest_names_the_dependencies() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        // Outside of a repository only the folder itself counts.
        write("package.json", r#"{"dependencies":{"x":"1"},"devDependencies":{"y":{}}}"#);
        assert_eq!(dependencies(&inner), Vec::<String>::new());
        fs::create_dir(root.path().join(".git")).unwrap();
        assert_eq!(dependencies(&inner), ["x", "y"]);
        write(
            "a/Cargo.toml",
            "[dependencies]\nserde = '1'\nlog = { path = '..' }\n[dev-dependencies]\nz = '1'\n",
        );
        assert_eq!(dependencies(&inner), ["log", "serde"]);
        write(
            "a/b/go.mod",
            "module m\n\nrequire a.b/c v1.0.0\nrequire (\n\td.e/f v2.0.0 // indirect\n\t// no\n)\nreplace g => h v1\n",
        );
        assert_eq!(dependencies(&inner), ["a.b/c", "d.e/f"]);
        write("a/b/go.mod", "");
        write(
            "a/b/pyproject.toml",
            "[project]\ndependencies = ['numpy[x]>=1; y', 'zope.interface']\n",
        );
        write("a/b/requirements.txt", "# c\n-r other.txt\n  requests==2\nhttps\n");
        assert_eq!(dependencies(&inner), ["numpy", "zope.interface", "requests", "https"]);
        // A broken manifest names none, and no number of names is too large.
        write("a/b/pyproject.toml", "[project");
        let many: Vec<String> = (0..500).map(|n| format!("p{n}")).collect();
        write("a/b/requirements.txt", &format!("{}\n{}", "n".repeat(300), many.join("\n")));
        assert!(
            matches!(dependencies(&inner).as_slice(), [first, .., last] if first == "p0" && last == "p99")
        );
    }

    #[test]
    fn a_workspace_tells_branch_remote_and_package() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        fs::create_dir(&git).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/topic/a\n").unwrap();
        fs::write(
            git.join("config"),
            "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://u:p@h/r\n",
        )
        .unwrap();
        fs::write(
            folder.path().join("Cargo.toml"),
            "[package]\nname = \"p\"\nversion = \"1.2.3\"\n",
        )
        .unwrap();
        let inner = folder.path().join("src");
        fs::create_dir(&inner).unwrap();
        let found = workspace(&inner);
        assert_eq!(found.git_branch.as_deref(), Some("topic/a"));
        assert_eq!(found.remote.as_deref(), Some("https://h/r"));
        assert_eq!(found.package, Some(("p".into(), Some("1.2.3".into()))));
    }
}
