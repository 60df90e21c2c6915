//! Plans as documents of XML and YAML, in the form of PostgreSQL's.

use crate::json::Json;
use std::fmt::Write;

/// Members of a document of XML: names of elements have no spaces, and a list has an element for each part of it.
pub(crate) fn put_xml(members: &[(String, Json)], out: &mut String) {
    out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n");
    put_elements(members, 2, out);
    out.push_str("  </Query>\n</explain>");
}

fn put_elements(members: &[(String, Json)], depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for (name, value) in members {
        let tag = name.replace(' ', "-");
        match value {
            Json::Object(inner) => {
                _ = writeln!(out, "{indent}<{tag}>");
                put_elements(inner, depth + 1, out);
                _ = writeln!(out, "{indent}</{tag}>");
            }
            Json::Array(parts) => {
                _ = writeln!(out, "{indent}<{tag}>");
                let one = name.strip_suffix('s').unwrap_or(name);
                for part in parts {
                    put_elements(&[(one.to_string(), part.clone())], depth + 1, out);
                }
                _ = writeln!(out, "{indent}</{tag}>");
            }
            value => _ = writeln!(out, "{indent}<{tag}>{}</{tag}>", escaped(&shown(value))),
        }
    }
}

fn shown(value: &Json) -> String {
    match value {
        Json::Text(text) | Json::Number(text) => text.clone(),
        Json::Bool(value) => value.to_string(),
        _ => String::new(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The same of YAML: texts stand in quotes, numbers do not.
pub(crate) fn put_yaml(members: &[(String, Json)], out: &mut String) {
    put_entries(members, 0, out);
}

/// The entries of one element of a list, the first one behind a dash.
fn put_entries(members: &[(String, Json)], depth: usize, out: &mut String) {
    for (number, (name, value)) in members.iter().enumerate() {
        let dash = if number == 0 { "- " } else { "  " };
        put_entry(name, value, (depth, dash), out);
    }
}

fn put_entry(name: &str, value: &Json, (depth, dash): (usize, &str), out: &mut String) {
    let indent = " ".repeat(depth);
    if !out.is_empty() {
        out.push('\n');
    }
    _ = write!(out, "{indent}{dash}{name}: ");
    match value {
        Json::Object(inner) => inner.iter().for_each(|(name, value)| put_entry(name, value, (depth + 2, "  "), out)),
        Json::Array(parts) => {
            for part in parts {
                if let Json::Object(inner) = part {
                    put_entries(inner, depth + 4, out);
                }
            }
        }
        Json::Text(text) => Json::Text(text.clone()).write_pretty(0, 2, out),
        value => out.push_str(&shown(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_documents_of_xml_and_yaml() {
        let text = |text: &str| Json::Text(text.to_string());
        let scan = Json::Object(vec![("Node Type".to_string(), text("a < b"))]);
        let plans = Json::Array(vec![scan.clone(), scan]);
        let sort = Json::Object(vec![("Node Type".to_string(), text("sort")), ("Plans".to_string(), plans)]);
        let members = [("Plan".to_string(), sort), ("Execution Time".to_string(), Json::Number("1.5".to_string()))];
        let (mut xml, mut yaml) = (String::new(), String::new());
        put_xml(&members, &mut xml);
        put_yaml(&members, &mut yaml);
        let scan = "        <Plan>\n          <Node-Type>a &lt; b</Node-Type>\n        </Plan>\n";
        let plan = format!(
            "    <Plan>\n      <Node-Type>sort</Node-Type>\n      <Plans>\n{scan}{scan}      </Plans>\n    </Plan>\n"
        );
        let begin = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n";
        let end = "    <Execution-Time>1.5</Execution-Time>\n  </Query>\n</explain>";
        assert_eq!(xml, format!("{begin}{plan}{end}"));
        let scan = "\n      - Node Type: \"a < b\"";
        let plan = format!("- Plan: \n    Node Type: \"sort\"\n    Plans: {scan}{scan}");
        assert_eq!(yaml, format!("{plan}\n  Execution Time: 1.5"));
    }
}
