//! Rings in which a baton goes round. There is only one in each ring, so no later wake makes up for
//! one that was lost.

use crate::actor::{Actor, Verdict};
use crate::crew::Crew;

/// Threads in a ring.
pub(crate) const MEMBERS: usize = 4;

/// Hires the members of the rings that these words make up: each waits for the baton at its own
/// word (`catch`), and then passes it to the next. Both get the number of the ring, too.
pub(crate) fn hire<'scope, W: Copy + Send + 'scope>(
    crew: &mut Crew<'scope, '_>,
    words: &[W],
    laps: usize,
    catch: impl Fn(&mut Actor, usize, W) -> Verdict + Copy + Send + 'scope,
    pass: impl Fn(&mut Actor, usize, W) -> Verdict + Copy + Send + 'scope,
) {
    for (number, ring) in words.chunks_exact(MEMBERS).enumerate() {
        for (position, &own) in ring.iter().enumerate() {
            let next = ring[(position + 1) % MEMBERS];
            crew.spawn("member", number * MEMBERS + position, move |actor| {
                for lap in 0..laps {
                    if (position, lap) != (0, 0) {
                        catch(actor, number, own)?;
                    }
                    pass(actor, number, next)?;
                }
                // The last baton stays where it began.
                match position {
                    0 => catch(actor, number, own),
                    _ => Ok(()),
                }
            });
        }
    }
}
