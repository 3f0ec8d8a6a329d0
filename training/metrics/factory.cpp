#include "training/metrics/factory.h"

#include "runtime/error.h"
#include "training/metrics/cross_entropy.h"
#include "training/metrics/language_cross_entropy.h"
#include "training/metrics/multiclass_accuracy.h"

namespace tutti {
namespace {

using Maker = MetricPtr (*)();

template <class M>
MetricPtr make() {
  return std::make_unique<M>();
}

constexpr std::pair<const char*, Maker> kMakers[] = {{"MulticlassAccuracy", make<MulticlassAccuracy>},
                                                     {"CrossEntropy", make<CrossEntropy>},
                                                     {"LanguageCrossEntropy", make<LanguageCrossEntropy>},
                                                     {"LanguagePerplexity", make<LanguagePerplexity>}};

}  // namespace

MetricPtr make_metric(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, maker] : kMakers) {
    if (name == known) return maker();
    names.emplace_back(known);
  }
  const std::string nearest = nearest_name(name, names);
  throw UserError("there is no metric '" + name + "'" +
                  (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

}  // namespace tutti
