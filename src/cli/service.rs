//! Services: how the system starts a watch by itself when its user logs in.
//!
//! A service is printed and not installed: a person reads it first, and the manager of services has commands of its own.
//!
//! Invariant: every path and value is written as that file's own syntax wants it, or the service is refused.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use anyhow::{Context as _, anyhow};
use undertext::wire::FORMATS;

use super::Context;
use super::common::shown;
use super::error::{CommandError, Exit};

/// The name of the service.
const LABEL: &str = "undertext-watch";

/// A program that manages services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Manager {
    /// Most Linux systems
    Systemd,
    /// macOS
    Launchd,
}

impl Manager {
    /// The word for the one of this system.
    pub(crate) const OF_THIS_SYSTEM: &str =
        if cfg!(target_os = "macos") { "launchd" } else { "systemd" };
}

/// What a service runs.
struct Service {
    words: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
}

impl Context {
    /// Prints a service that watches for the store of this command.
    pub(crate) fn print_service(&mut self, manager: Manager) -> Result<Exit, CommandError> {
        let program = self.env.program().context("cannot find the path of this program")?;
        let mut words = vec![program.into_os_string(), "watch".into(), "--quiet".into()];
        let own = self.env.data_home.as_ref().map(|data| data.join("undertext"));
        let root = self.root()?;
        if Some(&root) != own.as_ref() {
            words.extend(["--store".into(), root.into_os_string()]);
        }
        // A service does not see the variables of the shell in which it was printed.
        let folders = FORMATS.into_iter().flat_map(|format| format.traits().folders);
        let mut names: Vec<&'static str> = folders.filter_map(|folder| folder.variable).collect();
        names.sort_unstable();
        names.dedup();
        let service = Service { words, variables: self.env.handed_on(names) };
        let text = match manager {
            Manager::Systemd => service.systemd()?,
            Manager::Launchd => service.launchd()?,
        };
        self.output.write_all(text.as_bytes())?;
        Ok(Exit::Yes)
    }
}

impl Service {
    /// Returns a user unit of systemd.
    fn systemd(&self) -> Result<String, CommandError> {
        let is_refused = |c: char| c.is_control() || ['"', '\'', '\\'].contains(&c);
        let program = self.words.first().map(OsString::as_os_str).unwrap_or_default();
        if program.to_str().is_none_or(|program| program.contains(is_refused)) {
            let name = shown(program.as_ref());
            return Err(CommandError::user(anyhow!("systemd cannot run a program named {name}")));
        }
        // Of the words, only those behind the first can name variables.
        let words = self.words.iter().enumerate();
        let words: Vec<String> = words.map(|(n, word)| unit_word(word, n > 0)).collect();
        let mut variables = String::new();
        for (name, value) in &self.variables {
            let pair = [OsStr::new(name), value].join(OsStr::new("="));
            let _ = writeln!(variables, "Environment={}", unit_word(&pair, false));
        }
        Ok(format!(
            "\
# To install: save this as ~/.config/systemd/user/{LABEL}.service, and then
#   systemctl --user daemon-reload
#   systemctl --user enable --now {LABEL}
# To see its output: journalctl --user -u {LABEL}
# To remove it: systemctl --user disable --now {LABEL}, and delete the file.
[Unit]
Description=Imports what coding agents write, as they write it

[Service]
ExecStart={}
{variables}StandardOutput=null
Restart=on-failure
RestartSec=60
Nice=10

[Install]
WantedBy=default.target
",
            words.join(" ")
        ))
    }

    /// Returns an agent of launchd.
    fn launchd(&self) -> Result<String, CommandError> {
        let mut words = String::new();
        for word in &self.words {
            let _ = writeln!(words, "    <string>{}</string>", xml(word)?);
        }
        let mut variables = String::new();
        for (name, value) in &self.variables {
            let value = xml(value)?;
            let _ = writeln!(variables, "    <key>{name}</key>\n    <string>{value}</string>");
        }
        if !variables.is_empty() {
            variables =
                format!("  <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n");
        }
        Ok(format!(
            "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<!-- To install: save this as ~/Library/LaunchAgents/{LABEL}.plist, and then
       launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/{LABEL}.plist
     To remove it: launchctl bootout gui/$(id -u)/{LABEL}, and delete the file. -->
<plist version=\"1.0\">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
{variables}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>60</integer>
  <key>ProcessType</key>
  <string>Background</string>
</dict>
</plist>
"
        ))
    }
}

/// Returns a word as a unit of systemd has it: in quotes, with what it would replace written twice.
fn unit_word(word: &OsStr, names_variables: bool) -> String {
    let mut quoted = String::from("\"");
    for chunk in word.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                '%' => quoted.push_str("%%"),
                '$' if names_variables => quoted.push_str("$$"),
                c if c.is_ascii_control() => {
                    let _ = write!(quoted, "\\x{:02x}", u32::from(c));
                }
                c => quoted.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(quoted, "\\x{byte:02x}");
        }
    }
    quoted + "\""
}

/// Returns a word as XML has it.
fn xml(word: &OsStr) -> Result<String, CommandError> {
    let text = word.to_str().filter(|text| !text.contains(char::is_control)).ok_or_else(|| {
        let name = shown(word.as_ref());
        CommandError::user(anyhow!("{name} cannot be written into a launchd file"))
    })?;
    Ok(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_comes_through_a_unit_and_a_plist() {
        let unit = |word: &str, names| unit_word(OsStr::new(word), names);
        assert_eq!(unit("/opt/a b/%n", false), r#""/opt/a b/%%n""#);
        assert_eq!(unit(r#"/"a"\$HOME"#, false), r#""/\"a\"\\$HOME""#);
        assert_eq!(unit("/$HOME/é", true), r#""/$$HOME/é""#);
        assert_eq!(unit("/a\nb", true), r#""/a\x0ab""#);
        assert_eq!(unit_word(OsStr::from_bytes(b"/a\xffb"), true), r#""/a\xffb""#);
        assert_eq!(xml(OsStr::new("/a & <b> é")).unwrap(), "/a &amp; &lt;b&gt; é");
        assert!(xml(OsStr::new("/a\nb")).is_err() && xml(OsStr::from_bytes(b"\xff")).is_err());
    }
}
