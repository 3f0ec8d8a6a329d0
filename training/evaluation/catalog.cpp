#include "training/evaluation/catalog.h"

#include "data/readers/catalog.h"
#include "data/readers/options.h"
#include "training/metrics/options.h"

namespace tutti {
namespace {

// "auto": as large as fits.
void read_size(EvaluatorKeys& keys, const Setting& size) {
  if (size.is_integer()) keys.device_eval_microbatch_size = size.integer();
}

// The label first, the other keys behind those of all data.
Catalog with_evaluator_keys(Catalog catalog) {
  const std::vector<Key> keys = EvaluatorKeys::kind().entry.keys;
  catalog.keys.insert(catalog.keys.begin(), keys.front());
  catalog.keys.insert(catalog.keys.end(), keys.begin() + 1, keys.end());
  return catalog;
}

}  // namespace

Kind<EvaluatorKeys> EvaluatorKeys::kind() {
  using Keys = EvaluatorKeys;
  static const auto metric_tables = std::make_shared<const Catalog>(metric_catalog());
  Key size{"device_eval_microbatch_size", KeyType::kInteger, "none",
           "samples of a forward pass on each rank; the whole of a batch when absent or auto, and smaller "
           "where memory runs out"};
  return {
      "data.eval",
      "",
      {option("label", &Keys::label, "its name: it measures metrics/LABEL/loss and others"),
       option("metric_names", &Keys::metric_names,
              "parts of names of the model's metrics, as regular expressions in any case, or other metrics "
              "with the defaults; what the model says when absent")
           .as(KeyType::kTexts),
       option("metrics", &Keys::metrics,
              "what to measure beside the model's metrics, or those of metric_names; each with its own keys")
           .each(metric_tables)
           .as(KeyType::kTables),
       option("loss", &Keys::loss,
              "measures the model's loss too; false where its loss does not take what its eval_forward "
              "gives"),
       option("eval_interval", &Keys::eval_interval, "how often; as [train] says when absent"),
       {std::move(size).at_least(1).at_most(1e9).or_word("auto"), read_size}}};
}

Catalog eval_catalog() { return with_evaluator_keys(eval_data_catalog()); }

Catalog evaluators_catalog() {
  Catalog catalog = eval_catalog();
  catalog.keys.front().fallback = "";  // the label is required
  catalog.section = "evaluators";
  catalog.doc = "What else is evaluated on: as [data.eval], each under a label of its own.";
  catalog.default_kind = "";
  std::erase_if(catalog.entries, [](const Entry& entry) { return entry.name == kSplitKind; });
  catalog.repeated = true;
  return catalog;
}

}  // namespace tutti
