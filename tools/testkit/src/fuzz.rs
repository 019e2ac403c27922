//! Random inputs for as long as requested, from a seed that a failure names; and the smallest input
//! that still fails.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::fmt::{Debug, Display};
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How long, and from which seed.
pub struct Fuzz {
    /// How long.
    pub time: Duration,
    /// The seed of the first batch.
    pub seed: u64,
}

/// The smallest failing input that was found.
pub struct Failure<T> {
    /// The input.
    pub smallest: T,
    reason: String,
    /// The seed of the batch that contained it.
    seed: u64,
    /// How many inputs were tried before that.
    before: u64,
}

/// Inputs from one seed. A failure among them is found again within this many.
const BATCH: u32 = 50;

impl Fuzz {
    /// From `WAITWORD_FUZZ_SECONDS` and `WAITWORD_FUZZ_SEED`; otherwise 2 seconds, and a random
    /// seed.
    pub fn from_environment() -> Self {
        Self {
            time: Duration::from_secs(variable("WAITWORD_FUZZ_SECONDS").unwrap_or(2)),
            seed: variable("WAITWORD_FUZZ_SEED")
                .unwrap_or_else(|| RandomState::new().hash_one(0) >> 32),
        }
    }

    /// The same, if `WAITWORD_FUZZ_SECONDS` is set.
    pub fn asked_for() -> Option<Self> {
        variable::<u64>("WAITWORD_FUZZ_SECONDS").map(|_| Self::from_environment())
    }

    /// Tries inputs until the time is over, or one fails. Prints how many there were.
    pub fn run<S: Strategy>(
        self,
        inputs: &S,
        test: impl Fn(&S::Value) -> Result<(), String>,
    ) -> Result<(), Failure<S::Value>> {
        let end = Instant::now() + self.time;
        let mut tried = 0;
        let mut seed = self.seed;
        println!("fuzz: from seed {seed}");
        while tried == 0 || Instant::now() < end {
            let config = Config {
                cases: BATCH,
                failure_persistence: None,
                max_shrink_iters: 4096,
                // Milliseconds. An input that hangs is not tried forever.
                max_shrink_time: 30_000,
                ..Config::default()
            };
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&seed.to_le_bytes());
            let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
            let tested = TestRunner::new_with_rng(config, random)
                .run(inputs, |input| test(&input).map_err(TestCaseError::fail));
            match tested {
                Ok(()) => {}
                Err(TestError::Fail(reason, smallest)) => {
                    return Err(Failure {
                        smallest,
                        reason: reason.message().to_owned(),
                        seed,
                        before: tried,
                    });
                }
                Err(TestError::Abort(reason)) => panic!("no input could be made: {reason}"),
            }
            tried += u64::from(BATCH);
            seed = seed.wrapping_add(1);
        }
        println!("fuzz: {tried} programs, seeds {} to {}", self.seed, seed - 1);
        Ok(())
    }
}

impl<T: Debug> Failure<T> {
    /// The text to print; `source` turns the input into a test.
    pub fn text(&self, source: impl Fn(&T) -> String) -> String {
        let Self { seed, before, .. } = self;
        format!(
            "{}\nafter {before} others. Again: WAITWORD_FUZZ_SEED={seed}. As a test:\n\n{}",
            self.reason,
            source(&self.smallest)
        )
    }
}

fn variable<T: FromStr>(name: &str) -> Option<T>
where
    T::Err: Display,
{
    let text = std::env::var(name).ok()?;
    match text.parse() {
        Ok(value) => Some(value),
        Err(error) => panic!("{name} is {text:?}: {error}"),
    }
}
