//! What records say of the model that a session is for.

/// What a record may say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Its name.
    Model,
    /// How many tokens it takes.
    Window,
}

/// What a record says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The model.
    pub model: Option<String>,
    /// How many tokens it takes.
    pub window: Option<u64>,
}
