//! Ctrl-C.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The exit status of a run that was stopped.
pub(crate) const STOPPED: u8 = 130;

/// The first Ctrl-C asks the run to stop. The second ends the process.
pub(crate) fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, STOPPED.into(), stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}
