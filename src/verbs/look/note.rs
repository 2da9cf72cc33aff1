//! Notes from later: the message that a revert leaves for the model, with an explanation of its origin.

/// The opening tag of a note from later.
const NOTE: &str = "<note-from-later>";

/// The text after the message.
const ADVICE: &str = "\n\nTake it into account, look at the present state before you rely on it, and go on from here.";

/// Wraps a message with an explanation of its origin for the model.
pub(crate) fn from_later(message: &str) -> String {
    wrapped(
        "This conversation was further along before and has been taken back to this point. What was said and \
         done after it is no longer visible to you, but files and other things in the working directory may already \
         have been changed by it. From there, this was left for you:",
        message,
    )
}

/// Wraps a message with an explanation of one paragraph.
pub(crate) fn wrapped(why: &str, message: &str) -> String {
    format!("{NOTE}\n{why}\n\n{}{ADVICE}\n</note-from-later>", message.trim())
}

/// Returns the message in a note from later. `opening` is the text that an agent puts before such notes, if any.
pub(crate) fn said_from_later<'n>(note: &'n str, opening: &str) -> Option<&'n str> {
    let note = note.strip_prefix(opening).unwrap_or(note);
    let (_, said) = note.strip_prefix(NOTE)?.split_once("\n\n")?;
    Some(said.rsplit_once(ADVICE).map_or(said, |(said, _)| said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_from_later_gives_its_message_back() {
        let message = "The parser is done.\n\nSee `src/parse.rs`.";
        assert_eq!(said_from_later(&from_later(message), ""), Some(message));
        let opened = format!("<system>{}", from_later(message));
        assert_eq!(said_from_later(&opened, "<system>"), Some(message));
        assert_eq!(said_from_later(&opened, ""), None);
        assert_eq!(said_from_later(message, ""), None);
    }
}
