//! Secrets: what looks like one, where it is, and masks in place of it.

use crate::{
    ops::{
        OpsError,
        suspects::{Suspect, Suspects, secrets, suspects},
    },
    report::Secrets,
    secrets::{Masking, Masks, Rules},
    session::Session,
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

/// Returns masks for a document of a session: what is found anywhere in the session is masked wherever it is.
pub fn masking(archive: &Archive, session: &Session, masks: Masks) -> Result<Masking, OpsError> {
    let found = match &masks.secrets {
        Some(allowed) => {
            let (session, allowed) = (Some(session.clone()), allowed.clone());
            suspects(archive, &Suspects { session, allowed, ..Suspects::default() })?
        }
        None => Vec::new(),
    };
    let known = found.into_iter().map(|Suspect { rule, secret }| (secret, rule)).collect();
    Ok(Masking::new(masks, known))
}

/// Returns the names of all rules.
pub fn secret_rules() -> Vec<&'static str> {
    Rules::get().names().collect()
}
