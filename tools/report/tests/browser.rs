//! The page in a real browser: it loads without errors, its plots have a size, its tables have the
//! report's numbers, light and dark differ, nothing overflows, and in print everything is expanded.

mod harness;
mod sample;

use harness::{Page, path};
use waitword_bench::locks::marked;
use waitword_bench::report::{CaseReport, Report};
use waitword_report::{figure, html};
use waitword_testkit::watch;

#[test]
fn the_page_is_as_it_should_be_in_a_browser() {
    let Some(browser) = path() else { return };
    let watchdog = watch();
    let report = sample::whole();
    let page = Page::open(browser, &html(&report));

    for check in [
        nothing_is_loaded_and_nothing_is_wrong,
        every_plot_is_drawn,
        the_tables_have_the_reports_numbers,
        a_key_shows_its_line,
        light_and_dark_differ,
        nothing_overflows,
        on_paper_all_is_open,
    ] {
        watchdog.pat();
        check(&page, &report);
    }
}

fn nothing_is_loaded_and_nothing_is_wrong(page: &Page, _: &Report) {
    assert_eq!(page.eval::<String>("document.readyState"), "complete");
    assert_eq!(page.eval::<String>("document.title.slice(0, 14)"), "waitword bench");
    assert_eq!(page.eval::<usize>("document.scripts.length"), 0);
    assert_eq!(page.eval::<usize>("performance.getEntriesByType('resource').length"), 0);
    assert_eq!(*page.errors.lock().unwrap(), [""; 0]);
}

/// The number of plots that a case's metrics give.
fn plots_of(case: &CaseReport) -> usize {
    let first = &case.variants[0];
    let any = |name: &str| first.metrics.iter().any(|metric| metric.name == name);
    let is_drawn = |value: f64| value.is_finite() && value > 0.0;
    let ratios =
        case.variants.iter().flat_map(|variant| &variant.metrics).filter_map(|metric| metric.ratio);
    let has_ratio = ratios.into_iter().any(|ratio| is_drawn(ratio.summary.median));
    let has_usage = case.variants.iter().any(|variant| variant.operations > 0);
    [has_ratio, has_usage, any("fairness"), any("wait p50")].map(usize::from).iter().sum()
}

/// The variants of the workload's first case.
fn variants_of<'a>(report: &'a Report, workload: &str) -> impl Iterator<Item = &'a str> {
    let found = report.workloads.iter().find(|of| of.name == workload);
    let variants = &found.unwrap().cases[0].variants;
    variants.iter().map(|variant| variant.name.as_str())
}

fn every_plot_is_drawn(page: &Page, report: &Report) {
    let sizes: Vec<[f64; 2]> = page.each(
        "figure svg.plot",
        "[e.getBoundingClientRect().width, e.getBoundingClientRect().height]",
    );
    assert!(sizes.iter().all(|[width, height]| *width > 200.0 && *height > 50.0), "{sizes:?}");
    let cases: usize =
        report.workloads.iter().flat_map(|workload| &workload.cases).map(plots_of).sum();
    // Two more for the curves of mutex and rwlock, one for the programs, two for the families of
    // random loads.
    assert_eq!(sizes.len(), cases + 2 + 1 + 2);

    // A line and a key for each variant; a mark and a whisker for each of three numbers of threads.
    let curve = "#mutex > .figures > figure";
    let variants = variants_of(report, "mutex").count();
    let lines: Vec<[f64; 2]> = page.each(
        &format!("{curve} svg.plot [stroke^='#02']"),
        "[e.getBoundingClientRect().width, parseFloat(getComputedStyle(e).strokeWidth)]",
    );
    assert_eq!(lines.len(), variants);
    assert!(lines.iter().all(|[width, _]| *width > 100.0), "{lines:?}");
    let thick = lines.iter().filter(|[_, stroke]| *stroke > 4.0).count();
    let ours = variants_of(report, "mutex")
        .filter(|name| name.starts_with("waitword") || *name == "drop-in");
    assert_eq!(thick, ours.count(), "ours are thick: {lines:?}");
    let looks: Vec<String> = page.each(
        &format!("{curve} svg.plot [stroke^='#02']"),
        "getComputedStyle(e).stroke + getComputedStyle(e).strokeDasharray",
    );
    assert!(
        looks.iter().all(|look| !look.contains("rgb(2, 0")),
        "a placeholder is left: {looks:?}"
    );
    let marks: usize = page.eval(&format!(
        "document.querySelectorAll(\"{curve} svg.plot :is([fill^='#03'], [stroke^='#03'])\").length"
    ));
    assert!(marks >= variants * 3 * 2, "{marks}");
    let keys: Vec<f64> =
        page.each(&format!("{curve} .keys svg use"), "e.getBoundingClientRect().width");
    assert_eq!(keys.len(), variants);
    assert!(keys.iter().all(|width| *width > 10.0), "{keys:?}");

    // A row of data for each variant.
    let rows: usize =
        page.eval(&format!("document.querySelectorAll('{curve} .data tbody tr').length"));
    assert_eq!(rows, variants);
    let without: usize =
        page.eval("document.querySelectorAll('figure:not(:has(.data tbody tr))').length");
    assert_eq!(without, 0);
}

/// Compares every row of each case's table of all figures: the variant, the metric, and the cells
/// with a number, both as number and as text.
fn the_tables_have_the_reports_numbers(page: &Page, report: &Report) {
    type Row = (String, String, Vec<(String, String)>);
    let shown: Vec<Vec<Row>> = page.each(
        "section.case",
        "(() => {
            const table = [...e.querySelectorAll(':scope > .wide table, :scope > details table')]\
                .at(-1);
            const figure = [...table.tHead.rows[0].cells].findIndex(\
                cell => cell.textContent == 'figure');
            return [...table.tBodies[0].rows].map(row => [
                row.cells[0].textContent,
                figure < 0 ? '' : row.cells[figure].textContent,
                [...row.querySelectorAll('[data-value]')].map(\
                    cell => [cell.dataset.value, cell.textContent])]);
        })()",
    );
    let number = |value: f64| (value.to_string(), figure(value));
    let row = |case: &CaseReport, metric: usize, variant: usize| -> Row {
        let variant = &case.variants[variant];
        let metric = &variant.metrics[metric];
        let ratio = metric.ratio.map(|ratio| ratio.summary.median);
        let numbers = [metric.summary.median].into_iter().chain(ratio).map(number);
        (marked(&variant.name), metric.name.clone(), numbers.collect())
    };
    let rows = |case: &CaseReport| -> Vec<Row> {
        let metrics = 0..case.variants[0].metrics.len();
        metrics
            .flat_map(|metric| {
                (0..case.variants.len()).map(move |variant| row(case, metric, variant))
            })
            .collect()
    };
    let expected: Vec<Vec<Row>> =
        report.workloads.iter().flat_map(|workload| &workload.cases).map(rows).collect();
    assert_eq!(shown, expected);
}

/// While the pointer is on a key, other lines fade.
fn a_key_shows_its_line(page: &Page, report: &Report) {
    let curve = "#mutex > .figures > figure";
    let opacities = || -> Vec<String> {
        page.each(&format!("{curve} svg.plot [stroke^='#02']"), "getComputedStyle(e).opacity")
    };
    assert!(opacities().iter().all(|opacity| opacity == "1"));
    let key = page.tab.find_element(&format!("{curve} .keys li")).unwrap();
    key.move_mouse_over().unwrap();
    let others = opacities().iter().filter(|opacity| *opacity == "0.1").count();
    assert_eq!(others, variants_of(report, "mutex").count() - 1);
}

fn light_and_dark_differ(page: &Page, _: &Report) {
    let colours = |scheme: &str| -> Vec<String> {
        page.show_as("screen", scheme);
        let of = |selector: &str, property: &str| -> String {
            page.eval(&format!(
                "getComputedStyle(document.querySelector(\"{selector}\")).{property}"
            ))
        };
        vec![
            of("body", "backgroundColor"),
            of("body", "color"),
            of("svg.plot text", "fill"),
            of("figure svg.plot [stroke^='#02']", "stroke"),
            of("svg.plot [stroke='#010102']", "stroke"),
        ]
    };
    let (light, dark) = (colours("light"), colours("dark"));
    assert_eq!(light[0], "rgb(255, 255, 255)");
    for (light, dark) in light.iter().zip(&dark) {
        assert_ne!(light, dark);
    }
    page.show_as("screen", "light");
}

fn nothing_overflows(page: &Page, _: &Report) {
    for width in [1280, 390] {
        page.set_width(width);
        let widths: [u32; 2] =
            page.eval("[document.documentElement.scrollWidth, window.innerWidth]");
        assert_eq!(widths, [width; 2]);
    }
    // A wider table has its own scrollable box.
    let boxes: Vec<[f64; 2]> = page.each(".wide", "[e.scrollWidth, e.clientWidth]");
    assert!(boxes.iter().any(|[inside, outside]| inside > outside), "{boxes:?}");
    page.set_width(1280);
}

fn on_paper_all_is_open(page: &Page, _: &Report) {
    let heights = || -> Vec<f64> {
        page.each(
            "main details table",
            "e.checkVisibility({contentVisibilityAuto: true}) ? \
             e.getBoundingClientRect().height : 0",
        )
    };
    page.show_as("screen", "light");
    assert!(heights().iter().all(|height| *height == 0.0), "closed on the screen");
    page.show_as("print", "dark");
    let open = heights();
    assert!(open.iter().all(|height| *height > 0.0), "{open:?}");
    let background: String = page.eval("getComputedStyle(document.body).backgroundColor");
    assert_eq!(background, "rgb(255, 255, 255)", "black on white, whatever the screen has");
    let clipped: Vec<bool> =
        page.each(".wide, .picture", "getComputedStyle(e).overflowX == 'visible'");
    assert!(clipped.iter().all(|visible| *visible));
    let pdf = page.tab.print_to_pdf(None).unwrap();
    assert!(pdf.starts_with(b"%PDF-"));
}
