//! A compact list of line numbers: it stores only the jumps in a sequence that mostly counts up by one. Also counts the lines of
//! a file.

use std::{
    io::{self, Read},
    path::Path,
};

use memchr::memchr_iter;

use crate::{archive::SyncError, files::sources};

/// Numbers that mostly increase by one.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    count: u64,
    /// The jumps: how many numbers come before each, and the number there.
    jumps: Vec<(u64, u64)>,
}

impl Numbers {
    /// Appends a number.
    pub(crate) fn push(&mut self, number: u64) {
        if self.counted(self.jumps.len(), self.count) != Some(number) {
            self.jumps.push((self.count, number));
        }
        self.count += 1;
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the n-th number, counting from 0.
    pub(crate) fn get(&self, n: u64) -> Option<u64> {
        let jumps = self.jumps.partition_point(|(before, _)| *before <= n);
        self.counted(jumps, n).filter(|_| n < self.count)
    }

    /// Returns the n-th number if it follows without a jump from the last of the first `jumps` jumps.
    fn counted(&self, jumps: usize, n: u64) -> Option<u64> {
        let (before, number) = self.jumps.get(jumps.checked_sub(1)?)?;
        number.checked_add(n - before)
    }
}

/// Returns the number of line feeds in a file before an offset.
pub(crate) fn lines_before(path: &Path, offset: u64) -> io::Result<u64> {
    let mut stream = sources::open(path, 0)?.take(offset);
    let mut buffer = vec![0; 1 << 16];
    let mut lines = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(lines),
            read => {
                let read = buffer.get(..read).unwrap_or_default();
                lines += memchr_iter(b'\n', read).count() as u64;
            }
        }
    }
}

/// For an error in a file that was read from an offset, adds the lines before that offset to its line number.
pub(crate) fn counted(error: SyncError, path: &Path, from: u64) -> SyncError {
    match error {
        SyncError::Read(error) => error.behind(lines_before(path, from).unwrap_or(0)).into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_comes_back_and_those_that_count_up_take_one_place() {
        let check = |numbers: &[u64], jumps: usize| {
            let mut kept = Numbers::default();
            for number in numbers {
                kept.push(*number);
            }
            let found: Vec<u64> = (0..).map_while(|n| kept.get(n)).collect();
            assert_eq!((found.as_slice(), kept.jumps.len()), (numbers, jumps));
            assert_eq!(kept.count(), numbers.len() as u64);
        };
        check(&[], 0);
        check(&[7], 1);
        check(&[1, 2, 3, 4], 1);
        check(&[1, 1, 2, 3, 3, 9, 10, 4], 5);
        check(&[u64::MAX, 0, 1], 2);
    }
}
