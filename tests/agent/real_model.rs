//! A real model, small as it is, behind llama.cpp's own server: it speaks all three forms.

use serde_json::Value;

use crate::agent::scene::Scene;
use crate::small_model::Llama;

// needs: model
#[test]
fn a_real_model_answers_in_every_form_and_its_requests_can_be_made_again() {
    let Some(llama) = Llama::start() else { return };
    let url = format!("{}/v1", llama.url);
    let scene = Scene::new([]);
    for provider in ["openai", "openai-responses", "anthropic"] {
        let model = format!("{provider}:smollm2");
        let run = |text: &str| {
            let args = ["run", text, "--json", "--model", &model, "--base-url", &url];
            let limits = ["--budget", "8000", "--reserve", "64", "--session", provider];
            scene.ctx(&[args.as_slice(), &limits].concat()).run()
        };
        for text in ["Say hello.", "Say it again."] {
            let output = run(text);
            let stdout = String::from_utf8(output.stdout).unwrap();
            let done: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
            // It may talk until it is cut off: a small model does.
            let ended = done["ended"].as_str().unwrap();
            assert!(["answered", "length"].contains(&ended), "{model}: {done}");
            assert!(
                !done["text"].as_str().unwrap().is_empty(),
                "{model}: {done}"
            );
            assert!(
                done["usage"]["inputTokens"].as_u64().unwrap() > 0,
                "{model}: {done}"
            );
            assert!(
                done["usage"]["outputTokens"].as_u64().unwrap() > 0,
                "{model}: {done}"
            );
        }
        let verified = scene.ctx(&["replay", provider, "--verify"]).success();
        assert!(verified.contains("2 request"), "{verified}");
    }
}
