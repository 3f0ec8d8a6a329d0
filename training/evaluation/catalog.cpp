#include "training/evaluation/catalog.h"

#include "data/readers/catalog.h"
#include "training/metrics/options.h"

namespace tutti {
namespace {

using enum KeyType;

Key label(const char* fallback) {
  return {"label", kText, fallback, "its name: it measures metrics/LABEL/loss and others"};
}

std::vector<Key> evaluator_keys() {
  return {
      {"metric_names", kTexts, "none",
       "parts of names of the model's metrics, as regular expressions in any case, or other metrics with the "
       "defaults; what the model says when absent"},
      Key{"metrics", kTables, "none",
          "what to measure beside the model's metrics, or those of metric_names; each with its own keys"}
          .each(std::make_shared<const Catalog>(metric_catalog())),
      {"loss", kBoolean, "true",
       "measures the model's loss too; false where its loss does not take what its eval_forward gives"},
      {"eval_interval", kTime, "none", "how often; as [train] says when absent"},
      Key{"device_eval_microbatch_size", kInteger, "none",
          "samples of a forward pass on each rank; the whole of a batch when absent or auto, and smaller "
          "where memory runs out"}
          .at_least(1)
          .at_most(1e9)
          .or_word("auto"),
  };
}

Catalog with_evaluator_keys(Catalog catalog, Key label) {
  catalog.keys.insert(catalog.keys.begin(), std::move(label));
  for (auto& key : evaluator_keys()) catalog.keys.push_back(std::move(key));
  return catalog;
}

}  // namespace

Catalog eval_catalog() { return with_evaluator_keys(eval_data_catalog(), label("eval")); }

Catalog evaluators_catalog() {
  Catalog catalog = with_evaluator_keys(eval_data_catalog(), label(""));
  catalog.section = "evaluators";
  catalog.doc = "What else is evaluated on: as [data.eval], each under a label of its own.";
  catalog.default_kind = "";
  catalog.repeated = true;
  return catalog;
}

}  // namespace tutti
