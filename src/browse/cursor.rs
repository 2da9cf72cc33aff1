//! A cursor in a list that is longer than its pane.

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Forward,
    Backward,
}

/// A cursor: the row that it is on, the first row shown, and how many rows fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) at: usize,
    pub(super) top: usize,
    pub(super) page: usize,
}

impl Cursor {
    /// Moves by rows.
    pub(super) fn step(&mut self, way: Way, rows: usize, len: usize) {
        self.at = match way {
            Way::Forward => self.at.saturating_add(rows).min(len.saturating_sub(1)),
            Way::Backward => self.at.saturating_sub(rows),
        };
    }

    /// Scrolls by rows and takes the cursor along.
    pub(super) fn scroll(&mut self, way: Way, rows: usize, len: usize) {
        let last = len.saturating_sub(self.page.max(1));
        self.top = match way {
            Way::Forward => self.top.saturating_add(rows).min(last),
            Way::Backward => self.top.saturating_sub(rows),
        };
        let end = (self.top + self.page).saturating_sub(1).min(len.saturating_sub(1));
        self.at = self.at.clamp(self.top.min(end), end);
    }

    /// Keeps the cursor inside the list.
    pub(super) fn limit(&mut self, len: usize) {
        self.at = self.at.min(len.saturating_sub(1));
        self.top = self.top.min(self.at);
    }

    /// Sets how many rows fit, and scrolls so that the cursor is visible.
    pub(super) fn fit(&mut self, page: usize) {
        self.page = page.max(1);
        self.top = self.top.clamp((self.at + 1).saturating_sub(self.page), self.at);
    }

    /// Moves to the next match. Starts over at the end. Returns false if nothing matches.
    pub(super) fn find(&mut self, len: usize, way: Way, is_it: impl Fn(usize) -> bool) -> bool {
        let mut all = (1..=len).map(|n| match way {
            Way::Forward => (self.at + n) % len,
            Way::Backward => (self.at + len - n) % len,
        });
        let found = all.find(|at| is_it(*at));
        self.at = found.unwrap_or(self.at);
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stays_in_the_list_and_in_sight() {
        let mut cursor = Cursor::default();
        cursor.step(Way::Forward, 5, 0);
        assert_eq!(cursor.at, 0);
        cursor.step(Way::Forward, 9, 20);
        cursor.fit(4);
        assert_eq!((cursor.at, cursor.top), (9, 6));
        cursor.scroll(Way::Backward, 4, 20);
        assert_eq!((cursor.at, cursor.top), (5, 2));
        cursor.scroll(Way::Forward, 99, 20);
        assert_eq!((cursor.at, cursor.top), (16, 16));
        cursor.limit(3);
        assert_eq!((cursor.at, cursor.top), (2, 2));
    }

    #[test]
    fn a_search_goes_around_the_end() {
        let mut cursor = Cursor::default();
        let ann = |at| [0, 2].contains(&at);
        assert!(cursor.find(3, Way::Forward, ann));
        assert_eq!(cursor.at, 2);
        assert!(cursor.find(3, Way::Forward, ann));
        assert_eq!(cursor.at, 0);
        assert!(cursor.find(3, Way::Backward, ann));
        assert_eq!(cursor.at, 2);
        assert!(!cursor.find(3, Way::Forward, |_| false));
        assert!(!cursor.find(0, Way::Forward, |_| true));
    }
}
