//! The page at `/`, for people: what runs here, what it sees, where to go.

use std::fmt::{self, Display, Write};
use std::time::{Duration, Instant};

use super::status::{DeviceLine, Status};

/// Nothing but this page's own style: a value that slipped past the escaping could do nothing.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page as HTML; every value in it is escaped.
pub(super) fn page(status: &Status, now: Instant) -> String {
    let mut html = String::with_capacity(4096);
    // Writing to a `String` cannot fail.
    let _ = write(&mut html, status, now);
    html
}

fn write(out: &mut String, status: &Status, now: Instant) -> fmt::Result {
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    // The first words are dcgm-exporter's title: scripts look for it.
    out.push_str("<title>GPU Exporter (nvml-exporter)</title>\n<style>\n");
    out.push_str(include_str!("landing.css"));
    out.push_str("</style>\n</head>\n<body>\n<main>\n");
    if let Some(scenario) = &status.simulated {
        let scenario = Escaped(scenario);
        writeln!(
            out,
            "<p class=\"banner\" role=\"status\">SIMULATED DATA: scenario “{scenario}”. \
             No number here comes from a GPU.</p>"
        )?;
    }
    writeln!(out, "<h1>nvml-exporter <small>{}</small></h1>", Escaped(&status.version))?;
    writeln!(out, "<p class=\"dim\">NVIDIA GPU metrics for Prometheus</p>")?;
    out.push_str("<nav aria-label=\"Endpoints\">\n<ul>\n");
    for (path, name) in
        [("metrics", "Metrics"), ("health", "Health"), ("readyz", "Ready"), ("livez", "Live")]
    {
        // Relative, so that the links hold behind a proxy with a path prefix.
        writeln!(out, "<li><a href=\"{path}\">{name}</a></li>")?;
    }
    out.push_str("</ul>\n</nav>\n");
    state(out, status, now)?;
    devices(out, &status.devices)?;
    out.push_str("</main>\n</body>\n</html>\n");
    Ok(())
}

fn state(out: &mut String, status: &Status, now: Instant) -> fmt::Result {
    out.push_str("<h2>State</h2>\n");
    if let Some(why) = status.not_ready(now) {
        writeln!(out, "<p class=\"bad\">Not ready: {}</p>", Escaped(&why))?;
    }
    if !status.library.is_empty() {
        writeln!(out, "<p>{}</p>", Escaped(&status.library))?;
    }
    if let Some(last) = status.last_pass {
        let ago = Ago(now.saturating_duration_since(last));
        writeln!(out, "<p>Last pass {ago}; {} since the start</p>", status.passes)?;
    }
    let config = &status.config;
    if !config.source.is_empty() {
        writeln!(out, "<p>Configuration: {}</p>", Escaped(&config.source))?;
    }
    if config.reloading {
        writeln!(out, "<p>The configuration is being reloaded.</p>")?;
    }
    if let Some(error) = &config.error {
        let error = Escaped(error);
        writeln!(
            out,
            "<p class=\"bad\">The last reload failed, the old one is in use: {error}</p>"
        )?;
    }
    Ok(())
}

fn devices(out: &mut String, devices: &[DeviceLine]) -> fmt::Result {
    out.push_str("<h2 id=\"devices\">Devices</h2>\n");
    if devices.is_empty() {
        return writeln!(out, "<p class=\"dim\">None seen yet.</p>");
    }
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"devices\">\n",
    );
    out.push_str("<table aria-labelledby=\"devices\">\n<thead><tr>");
    for column in ["Device", "Model", "UUID", "State"] {
        write!(out, "<th scope=\"col\">{column}</th>")?;
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for device in devices {
        let class = if device.up { "" } else { " class=\"bad\"" };
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td><code>{}</code></td><td{class}>{}</td></tr>",
            Escaped(&device.name),
            Escaped(&device.model),
            Escaped(&device.uuid),
            Escaped(&device.state),
        )?;
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    Ok(())
}

/// Text as HTML writes it, in elements and in quoted attributes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// An age in its largest fitting unit.
struct Ago(Duration);

impl Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0 => f.write_str("less than a second ago"),
            s @ 1..120 => write!(f, "{s} s ago"),
            s @ 120..7200 => write!(f, "{} min ago", s / 60),
            s => write!(f, "{} h ago", s / 3600),
        }
    }
}
