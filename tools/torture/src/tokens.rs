//! A semaphore on one word of any size, the protocol of most scenarios.
//!
//! ```text
//!   top bit   ...   colour 2   colour 1   colour 0       how many tokens of each colour there are
//!   closing
//! ```
//!
//! A taker of a colour sleeps only while the word holds a value without tokens of that colour. So
//! no value means different things at different times (the value of an 8-bit counter soon would).
//! Takers wait with their colour as the mask, and givers wake with it.

use crate::actor::Actor;
use crate::nap::let_others_run;
use crate::spot::{How, Spot};
use waitword::{Error, Scope};

/// The most colours that a word has.
pub(crate) const COLOURS: u32 = 3;

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens {
    pub(crate) spot: Spot,
    pub(crate) colours: u32,
}

/// The result of an attempt to take a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Token,
    /// The word is closing, and holds no token of this colour.
    Closed,
}

/// How takers wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Without deadlines: a lost wake-up is a hang.
    Endless,
    /// Every other wait has a tiny deadline, to race with the wakes.
    Mixed,
}

impl Tokens {
    /// As many colours as the word can distinguish.
    pub(crate) fn new(spot: Spot) -> Self {
        // A waiter on a shared 64-bit word has no mask.
        let masks = spot.scope == Scope::Private || spot.word.bits() != 64;
        Self { spot, colours: if masks { COLOURS } else { 1 } }
    }

    /// With one colour only, and so without masks.
    pub(crate) fn plain(spot: Spot) -> Self {
        Self { spot, colours: 1 }
    }

    fn lane_bits(self) -> u32 {
        (self.spot.word.bits() - 2) / self.colours
    }

    fn unit(self, colour: u32) -> u64 {
        1 << (colour * self.lane_bits())
    }

    /// The most tokens of one colour.
    pub(crate) fn room(self) -> u64 {
        (1 << self.lane_bits()) - 1
    }

    /// How many tokens of `colour` a value of the word contains.
    pub(crate) fn held(self, value: u64, colour: u32) -> u64 {
        value >> (colour * self.lane_bits()) & self.room()
    }

    fn closing_bit(self) -> u64 {
        1 << (self.spot.word.bits() - 1)
    }

    /// Whether the bits without a meaning are zero, as they must always be.
    pub(crate) fn is_sound(self, value: u64) -> bool {
        let lanes = (1 << (self.lane_bits() * self.colours)) - 1;
        let meaning = lanes | self.closing_bit();
        value & !meaning == 0
    }

    pub(crate) fn mask(self, colour: u32) -> u64 {
        if self.colours == 1 { u64::MAX } else { 1 << colour }
    }

    /// Adds a token, without waking any thread. Returns false if there is no room.
    /// Async-signal-safe.
    pub(crate) fn try_put(self, colour: u32) -> bool {
        loop {
            let value = self.spot.word.load();
            if self.held(value, colour) == self.room() {
                return false;
            }
            if self.spot.word.replace(value, value + self.unit(colour)) {
                return true;
            }
        }
    }

    /// Adds a token as soon as there is room.
    pub(crate) fn put(self, colour: u32) {
        while !self.try_put(colour) {
            let_others_run();
        }
    }

    /// Gives a token and wakes a taker.
    pub(crate) fn give(self, actor: &mut Actor, colour: u32) -> Result<(), String> {
        self.put(colour);
        actor.wake(self.spot, 1, self.mask(colour))?;
        actor.step();
        Ok(())
    }

    /// Gives a token, moves all takers to another word, and wakes them there.
    pub(crate) fn give_around(
        self,
        actor: &mut Actor,
        colour: u32,
        detour: Spot,
    ) -> Result<(), String> {
        self.put(colour);
        actor.requeue(self.spot, None, detour, (0, usize::MAX))?;
        actor.wake(detour, usize::MAX, u64::MAX)?;
        actor.step();
        Ok(())
    }

    pub(crate) fn is_closing(self) -> bool {
        self.spot.word.load() & self.closing_bit() != 0
    }

    pub(crate) fn try_take(self, colour: u32) -> bool {
        loop {
            let value = self.spot.word.load();
            if self.held(value, colour) == 0 {
                return false;
            }
            if self.spot.word.replace(value, value - self.unit(colour)) {
                return true;
            }
        }
    }

    /// Takes a token, and waits for one if necessary.
    pub(crate) fn take(
        self,
        actor: &mut Actor,
        colour: u32,
        patience: Patience,
    ) -> Result<Taken, String> {
        self.take_unless(actor, colour, patience, |_, error, _| match error {
            Error::Mismatch | Error::TimedOut => Ok(()),
            other => Err(format!("a wait on {self:?} failed: {other}")),
        })
    }

    /// The same. `judge` checks that an error of a wait is legitimate, given whether the wait had a
    /// deadline.
    pub(crate) fn take_unless(
        self,
        actor: &mut Actor,
        colour: u32,
        patience: Patience,
        mut judge: impl FnMut(&Actor, Error, bool) -> Result<(), String>,
    ) -> Result<Taken, String> {
        loop {
            if self.try_take(colour) {
                actor.step();
                return Ok(Taken::Token);
            }
            let value = self.spot.word.load();
            if self.held(value, colour) > 0 {
                continue;
            }
            if value & self.closing_bit() != 0 {
                return Ok(Taken::Closed);
            }
            if !self.is_sound(value) {
                return Err(format!("{:?} holds nonsense: {value:#x}", self.spot));
            }
            let deadline =
                (patience == Patience::Mixed && actor.dice.bool()).then(|| actor.tiny_deadline());
            let how = How { mask: self.mask(colour), deadline };
            if let Err(error) = actor.wait(self.spot, value, how) {
                if error == Error::TimedOut && deadline.is_none() {
                    return Err("a wait without a deadline timed out".to_owned());
                }
                judge(actor, error, deadline.is_some())?;
            }
        }
    }

    /// Marks the word as closing, after the last token, and wakes all waiters, once.
    pub(crate) fn close(self, actor: &mut Actor) -> Result<(), String> {
        self.spot.word.set_bits(self.closing_bit());
        actor.wake(self.spot, usize::MAX, u64::MAX)?;
        Ok(())
    }

    /// Empties the word, and opens it again.
    pub(crate) fn reset(self) {
        self.spot.word.store(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spot::{SIZES, Word};

    #[test]
    fn colours_do_not_touch_each_other() {
        for bits in SIZES {
            let memory: &'static mut u64 = Box::leak(Box::new(0));
            // SAFETY: leaked, and used as this word only.
            let word = unsafe { Word::at((&raw mut *memory).cast(), bits) };
            let tokens = Tokens::new(Spot { number: 1, word, scope: Scope::Private });
            for _ in 0..3 {
                assert!((0..COLOURS).all(|colour| tokens.try_put(colour)));
            }
            assert!((0..COLOURS).all(|colour| tokens.held(word.load(), colour) == 3));
            assert!(tokens.is_sound(word.load()));
            assert_eq!(tokens.try_put(1), bits > 8);
            assert!(tokens.try_take(2) && tokens.held(word.load(), 2) == 2);
            word.set_bits(tokens.closing_bit());
            assert!(tokens.is_sound(word.load()));
        }
    }
}
