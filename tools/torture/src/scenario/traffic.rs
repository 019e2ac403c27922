//! Traffic of tokens: a plan of which thread takes and gives what in a round, so that it adds up.
//! Several scenarios run this while something else goes on.

use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::crew::Crew;
use crate::spot::SIZES;
use crate::tokens::{Patience, Taken, Tokens};

/// A word and a colour: what a taker wants.
pub(super) type Kind = (Tokens, u32);

/// Private words of all sizes, half of them in one bucket, with all colours or with one.
pub(super) fn private_words(context: &Context) -> Vec<Tokens> {
    let colliding = context.colliding_words("token word", &SIZES);
    let apart = SIZES.map(|bits| context.private_word("token word apart", bits));
    let plain = [32, 64].map(|bits| context.private_word("plain token word", bits));
    let coloured = colliding.into_iter().chain(apart).map(Tokens::new);
    coloured.chain(plain.map(Tokens::plain)).collect()
}

/// Every kind of these words.
pub(super) fn kinds(words: &[Tokens]) -> Vec<Kind> {
    words
        .iter()
        .flat_map(|&tokens| (0..tokens.colours).map(move |colour| (tokens, colour)))
        .collect()
}

/// Traffic on private words.
pub(super) struct Traffic {
    pub(super) words: Vec<Tokens>,
    kinds: Vec<Kind>,
}

impl Traffic {
    pub(super) fn new(context: &Context) -> Self {
        let words = private_words(context);
        let kinds = kinds(&words);
        Self { words, kinds }
    }

    /// A round of traffic, with more threads hired by `beside`: every token that is given is taken,
    /// and as many waits return Ok as wakes count waiters.
    pub(super) fn round<'env>(
        &self,
        context: &'static Context,
        round: Round,
        tokens: usize,
        beside: impl for<'scope> FnOnce(&mut Crew<'scope, 'env>),
    ) -> Verdict {
        let before = context.totals();
        let plan = Plan::new(round, &self.kinds, round.threads, tokens);
        context.crew(round, |crew| {
            plan.hire(crew);
            beside(crew);
            Ok(())
        })?;
        nothing_left(&self.words)?;
        context.balance(&before)
    }
}

/// Which thread does what in a round.
pub(super) struct Plan {
    /// For each taker, what it takes, and how many.
    pub(super) takers: Vec<(Kind, usize)>,
    /// For each giver, what it gives, in order.
    pub(super) givers: Vec<Vec<Kind>>,
}

impl Plan {
    /// A plan for about `tokens` tokens in all.
    pub(super) fn new(round: Round, kinds: &[Kind], threads: usize, tokens: usize) -> Self {
        let mut dice = round.dice();
        let mut kinds = kinds.to_vec();
        dice.shuffle(&mut kinds);
        let givers = (threads / 4).max(1);
        let takers = threads - givers;
        let quota = (tokens / takers).max(1);
        let takers: Vec<_> = (0..takers).map(|taker| (kinds[taker % kinds.len()], quota)).collect();
        let mut gifts: Vec<Kind> =
            takers.iter().flat_map(|&(kind, quota)| std::iter::repeat_n(kind, quota)).collect();
        dice.shuffle(&mut gifts);
        let share = gifts.len().div_ceil(givers);
        let givers = gifts.chunks(share).map(<[Kind]>::to_vec).collect();
        Self { takers, givers }
    }

    /// Hires takers and givers for the whole plan.
    pub(super) fn hire(self, crew: &mut Crew<'_, '_>) {
        for (index, (kind, quota)) in self.takers.into_iter().enumerate() {
            crew.spawn("taker", index, move |actor| take_all(actor, index, kind, quota));
        }
        for (index, gifts) in self.givers.into_iter().enumerate() {
            crew.spawn("giver", index, move |actor| give_all(actor, &gifts));
        }
    }
}

/// Takes a quota. Takers with an odd number wait with deadlines now and then.
pub(super) fn take_all(
    actor: &mut Actor,
    index: usize,
    (tokens, colour): Kind,
    quota: usize,
) -> Verdict {
    let patience = [Patience::Endless, Patience::Mixed][index % 2];
    for _ in 0..quota {
        if tokens.take(actor, colour, patience)? == Taken::Closed {
            return Err("a word that was not closed is closed".to_owned());
        }
    }
    Ok(())
}

pub(super) fn give_all(actor: &mut Actor, gifts: &[Kind]) -> Verdict {
    for &(tokens, colour) in gifts {
        tokens.give(actor, colour)?;
        actor.dawdle();
    }
    Ok(())
}

/// Checks that no word holds a token any more.
pub(super) fn nothing_left(words: &[Tokens]) -> Verdict {
    match words.iter().find(|tokens| tokens.spot.word.load() != 0) {
        None => Ok(()),
        Some(tokens) => Err(format!("tokens are left over: {tokens:?}")),
    }
}
