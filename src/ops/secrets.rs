//! Auditing secrets: what looks like one, and where it stands.

use crate::{
    ops::{
        OpsError,
        suspects::{Suspects, secrets},
    },
    report::Secrets,
    secrets::Rules,
    sync::Archive,
};

/// Looks for secrets; `step` is told of each part of the work, and of all parts, when it is done.
pub fn audit_secrets(
    archive: &Archive,
    suspects: &Suspects,
    step: &mut dyn FnMut(u64, u64),
) -> Result<Secrets, OpsError> {
    secrets(archive, suspects, step)
}

/// Returns the names of all rules.
pub fn secret_rules() -> Vec<&'static str> {
    Rules::get().names().collect()
}
