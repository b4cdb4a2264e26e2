//! A drawing in SVG.

use std::fmt::Write as _;

/// A rectangle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }
}

/// A drawing in the making.
pub(super) struct Drawing(String);

/// Where a text is fastened.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Colours of the page, of panels, of lines between them, and of writing.
const PAGE: &str = "#f4f5f5";
const PANEL: &str = "#ffffff";
const EDGE: &str = "#d8d9da";
pub(super) const INK: &str = "#24292e";
pub(super) const FAINT: &str = "#6e7780";

/// The width of a letter, of its height, on the average; bold ones are wider.
const LETTER: f64 = 0.56;
const BOLD: f64 = 1.06;

impl Drawing {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" \
             font-family=\"Inter,DejaVu Sans,Helvetica,Arial,sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{PAGE}\"/>\n"
        ))
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }

    pub(super) fn rect(&mut self, area: &Area, fill: &str) {
        let Area { x, y, width, height } = area;
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{fill}\"/>"
        );
    }

    /// A text of this size, cut where it would be wider than `room`.
    pub(super) fn text(&mut self, at: (f64, f64), words: &str, style: &Style) {
        let anchor = match style.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if style.bold { " font-weight=\"600\"" } else { "" };
        let (x, y) = at;
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{:.1}\" fill=\"{}\"{anchor}{weight}>{}</text>",
            style.size,
            style.colour,
            escaped(&fitted(words, style.size, style.room / style.stretch()))
        );
    }

    /// Lines between points.
    pub(super) fn path(&mut self, points: &[(f64, f64)], stroke: &str, dashed: bool) {
        let dash = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = writeln!(
            self.0,
            "<path d=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"1.3\"{dash}/>",
            way(points)
        );
    }

    /// An area between points.
    pub(super) fn filled(&mut self, points: &[(f64, f64)], fill: &str) {
        let way = way(points);
        let _ = writeln!(
            self.0,
            "<path d=\"{way}Z\" fill=\"{fill}\" fill-opacity=\"0.35\" stroke=\"{fill}\"/>"
        );
    }

    pub(super) fn heading(&mut self, words: &str) {
        self.text((10.0, 27.0), words, &Style::new(18.0).bold());
    }

    pub(super) fn row(&mut self, area: &Area, words: &str) {
        self.text((area.x + 2.0, area.bottom() - 6.0), words, &Style::new(14.0).bold());
    }

    /// A panel with its title; where its content goes.
    pub(super) fn panel(&mut self, area: &Area, title: &str) -> Area {
        self.rect(area, EDGE);
        let inside = Area {
            x: area.x + 1.0,
            y: area.y + 1.0,
            width: area.width - 2.0,
            height: area.height - 2.0,
        };
        self.rect(&inside, PANEL);
        let style = Style::new(12.0).bold().within(area.width - 16.0);
        self.text((area.x + 8.0, area.y + 18.0), title, &style);
        Area {
            x: area.x + 8.0,
            y: area.y + 26.0,
            width: area.width - 16.0,
            height: area.height - 32.0,
        }
    }

    pub(super) fn centred(&mut self, area: &Area, words: &str) {
        let middle = (area.x + area.width / 2.0, area.y + area.height / 2.0);
        self.text(middle, words, &Style::new(13.0).faint().anchored(Anchor::Middle));
    }
}

/// How a text looks.
pub(super) struct Style {
    size: f64,
    colour: &'static str,
    anchor: Anchor,
    bold: bool,
    room: f64,
}

impl Style {
    pub(super) const fn new(size: f64) -> Self {
        Self { size, colour: INK, anchor: Anchor::Start, bold: false, room: f64::INFINITY }
    }

    const fn stretch(&self) -> f64 {
        if self.bold { BOLD } else { 1.0 }
    }

    pub(super) const fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    pub(super) const fn faint(mut self) -> Self {
        self.colour = FAINT;
        self
    }

    pub(super) const fn coloured(mut self, colour: &'static str) -> Self {
        self.colour = colour;
        self
    }

    pub(super) const fn anchored(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }

    pub(super) const fn within(mut self, room: f64) -> Self {
        self.room = room;
        self
    }
}

/// How wide a text of this size is, about.
pub(super) fn width(words: &str, size: f64) -> f64 {
    words.chars().count() as f64 * size * LETTER
}

/// A text, cut if there is no room for all of it.
fn fitted(words: &str, size: f64, room: f64) -> String {
    if width(words, size) <= room {
        return words.to_owned();
    }
    let mut cut = String::new();
    for letter in words.chars() {
        if width(&cut, size) + 2.0 * size * LETTER > room {
            break;
        }
        cut.push(letter);
    }
    cut.trim_end().to_owned() + "…"
}

/// The points as a path; those on a level line between others are left out.
fn way(points: &[(f64, f64)]) -> String {
    let mut way = String::new();
    let heights: Vec<String> = points.iter().map(|(_, y)| format!("{y:.1}")).collect();
    for (index, ((x, _), y)) in points.iter().zip(&heights).enumerate() {
        let before = index.checked_sub(1).and_then(|before| heights.get(before));
        if before == Some(y) && heights.get(index + 1) == Some(y) {
            continue;
        }
        let letter = if index == 0 { 'M' } else { 'L' };
        let _ = write!(way, "{letter}{x:.0} {}", y.strip_suffix(".0").unwrap_or(y));
    }
    way
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
