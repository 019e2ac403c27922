//! A page in a browser, for tests. Chromium or Chrome is found by name or through the variable
//! `CHROME`. Without a browser a test fails, unless `WAITWORD_NO_BROWSER=1` is set. In continuous
//! integration (`CI` is set) it fails even then.
//!
//! `tools/profile` has its own page and uses this file too.

use headless_chrome::protocol::cdp::Emulation::{
    MediaFeature, SetDeviceMetricsOverride, SetEmulatedMedia,
};
use headless_chrome::protocol::cdp::types::Event;
use headless_chrome::{Browser, LaunchOptions, Tab, browser};
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A loaded machine starts a browser slowly. Shorter than the watchdog's time, since the browser's
/// own message is more helpful.
const PATIENCE: Duration = Duration::from_secs(50);
const HOW: &str = "no browser to look at the page with: `apt-get install chromium`, \
                   or CHROME=/path/to/it; or WAITWORD_NO_BROWSER=1 to leave this test out";

/// The browser's path; `None` if this test is to be skipped.
pub(crate) fn path() -> Option<PathBuf> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("WAITWORD_NO_BROWSER") && !is_set("CI") {
        eprintln!("WAITWORD_NO_BROWSER is set: the page is not looked at");
        return None;
    }
    match browser::default_executable() {
        Ok(path) => Some(path),
        Err(error) => panic!("{HOW} ({error})"),
    }
}

/// The page, in its own browser with its own profile. Dropping it removes both.
pub(crate) struct Page {
    pub(crate) tab: Arc<Tab>,
    pub(crate) errors: Arc<Mutex<Vec<String>>>,
    _browser: Browser,
    _file: tempfile::TempPath,
}

impl Page {
    pub(crate) fn open(browser: PathBuf, text: &str) -> Self {
        let file = tempfile::Builder::new().suffix(".html").tempfile().unwrap().into_temp_path();
        std::fs::write(&file, text).unwrap();
        let options = LaunchOptions {
            path: Some(browser),
            // Chromium as root does not start with a sandbox. The page is ours, so it is trusted.
            sandbox: false,
            window_size: Some((1280, 900)),
            idle_browser_timeout: PATIENCE,
            // A container's /dev/shm is often too small.
            args: vec![OsStr::new("--disable-dev-shm-usage"), OsStr::new("--hide-scrollbars")],
            ..LaunchOptions::default()
        };
        let browser = Browser::new(options)
            .unwrap_or_else(|error| panic!("the browser does not start: {error}"));
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(PATIENCE);
        let errors = Arc::new(Mutex::new(Vec::new()));
        let heard = errors.clone();
        tab.enable_log().unwrap().enable_runtime().unwrap();
        tab.add_event_listener(Arc::new(move |event: &Event| {
            if matches!(
                event,
                Event::LogEntryAdded(_)
                    | Event::RuntimeExceptionThrown(_)
                    | Event::RuntimeConsoleAPICalled(_)
            ) {
                heard.lock().unwrap().push(format!("{event:?}"));
            }
        }))
        .unwrap();
        let url = format!("file://{}", file.display());
        tab.navigate_to(&url).unwrap().wait_until_navigated().unwrap();
        Self { tab, errors, _browser: browser, _file: file }
    }

    /// The value of this expression in the page.
    pub(crate) fn eval<T: DeserializeOwned>(&self, expression: &str) -> T {
        let text = format!("JSON.stringify({expression})");
        let value = self
            .tab
            .evaluate(&text, false)
            .unwrap_or_else(|error| panic!("{expression}: {error}"))
            .value;
        let json = value.unwrap_or_else(|| panic!("{expression}: nothing"));
        serde_json::from_str(json.as_str().unwrap())
            .unwrap_or_else(|error| panic!("{expression}: {json}: {error}"))
    }

    /// The value of this expression for each element of the selector, with the element as `e`.
    pub(crate) fn each<T: DeserializeOwned>(&self, selector: &str, expression: &str) -> Vec<T> {
        self.eval(&format!("[...document.querySelectorAll({selector:?})].map(e => {expression})"))
    }

    pub(crate) fn show_as(&self, media: &str, scheme: &str) {
        let features = vec![MediaFeature {
            name: "prefers-color-scheme".to_owned(),
            value: scheme.to_owned(),
        }];
        let media = SetEmulatedMedia { media: Some(media.to_owned()), features: Some(features) };
        self.tab.call_method(media).unwrap();
    }

    pub(crate) fn set_width(&self, width: u32) {
        let metrics = serde_json::json!({
            "width": width, "height": 900, "deviceScaleFactor": 1.0, "mobile": width < 500,
        });
        let metrics: SetDeviceMetricsOverride = serde_json::from_value(metrics).unwrap();
        self.tab.call_method(metrics).unwrap();
    }
}
