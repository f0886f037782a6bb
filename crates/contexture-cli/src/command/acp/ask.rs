//! Asks the host whether a tool may act.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use contexture_tools::approval::{Answer, Approver, Asking, Question};
use serde_json::Value;

use super::call;
use super::tell::Teller;

/// The person behind the host.
pub struct Host(pub Arc<Teller>);

/// What can be answered: the id, the words, the kind and what it means.
const OPTIONS: [(&str, &str, PermissionOptionKind, Answer); 3] = [
    (
        "allow",
        "Allow",
        PermissionOptionKind::AllowOnce,
        Answer::Once,
    ),
    (
        "always",
        "Always allow exactly this",
        PermissionOptionKind::AllowAlways,
        Answer::Always,
    ),
    (
        "reject",
        "Reject",
        PermissionOptionKind::RejectOnce,
        Answer::No,
    ),
];

impl Approver for Host {
    fn ask<'a>(&'a self, question: &'a Question<'a>) -> Asking<'a> {
        Box::pin(async move {
            let Self(teller) = self;
            let id = teller.asked_about().unwrap_or_default();
            let options = OPTIONS.map(|(id, name, kind, _)| PermissionOption::new(id, name, kind));
            let asked = ToolCallUpdate::new(id.clone(), about(question));
            let session = teller.session_id.clone();
            let request = RequestPermissionRequest::new(session, asked, options.to_vec());
            let answer = match teller.cx.send_request(request).block_task().await {
                Ok(answered) => read(&answered.outcome),
                // Nobody is there any more.
                Err(_) => Answer::No,
            };
            if matches!(answer, Answer::Once | Answer::Always) {
                let goes_on = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                teller.update(id, goes_on);
            }
            answer
        })
    }
}

/// The call as it would be made.
fn about(question: &Question<'_>) -> ToolCallUpdateFields {
    let tool = &question.tool;
    let fields = ToolCallUpdateFields::new()
        .title(call::title(&tool.name, question.arguments))
        .name(tool.name.clone())
        .kind(call::kind(&tool.name, Some(tool.effect)))
        .status(ToolCallStatus::Pending)
        .raw_input(Value::Object(question.arguments.clone()));
    match question.changed {
        false => fields,
        true => {
            let now = format!(
                "{} has changed its description since it was allowed: {}",
                tool.name, tool.description
            );
            fields.content(vec![ToolCallContent::from(now)])
        }
    }
}

/// An answer that we do not know is a no.
fn read(outcome: &RequestPermissionOutcome) -> Answer {
    let RequestPermissionOutcome::Selected(selected) = outcome else {
        return Answer::No;
    };
    let id: &str = &selected.option_id.0;
    let known = OPTIONS.iter().find(|(known, ..)| *known == id);
    known.map_or(Answer::No, |(.., answer)| *answer)
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::SelectedPermissionOutcome;

    use super::*;

    #[test]
    fn only_known_answers_allow() {
        let says = |id: &'static str| {
            read(&RequestPermissionOutcome::Selected(
                SelectedPermissionOutcome::new(id),
            ))
        };
        assert_eq!(says("allow"), Answer::Once);
        assert_eq!(says("always"), Answer::Always);
        for other in ["reject", "", "ALLOW", "allow_once", "yes"] {
            assert_eq!(says(other), Answer::No, "{other}");
        }
        assert_eq!(read(&RequestPermissionOutcome::Cancelled), Answer::No);
    }
}
