//! Numbers that mostly count up: of a million that do, one is kept.

/// Numbers of which most are by one greater than the one before them.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    count: u64,
    /// The numbers that are not: how many stand before each, and the number.
    jumps: Vec<(u64, u64)>,
}

impl Numbers {
    /// Adds a number behind the others.
    pub(crate) fn push(&mut self, number: u64) {
        if self.counted(self.jumps.len(), self.count) != Some(number) {
            self.jumps.push((self.count, number));
        }
        self.count += 1;
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the n-th number, from 0.
    pub(crate) fn get(&self, n: u64) -> Option<u64> {
        let jumps = self.jumps.partition_point(|(before, _)| *before <= n);
        self.counted(jumps, n).filter(|_| n < self.count)
    }

    /// Returns what the n-th number is if it counts up from the last of the first `jumps` jumps.
    fn counted(&self, jumps: usize, n: u64) -> Option<u64> {
        let (before, number) = self.jumps.get(jumps.checked_sub(1)?)?;
        number.checked_add(n - before)
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
