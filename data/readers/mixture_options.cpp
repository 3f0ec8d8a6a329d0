#include <algorithm>
#include <cmath>

#include "data/mixture.h"
#include "data/readers/options.h"
#include "runtime/error.h"

namespace tutti {
namespace {

// Samples of an epoch of a source that has a budget of tokens.
int64_t samples_of_tokens(const Setting& source) {
  const Setting& tokens = source.at("tokens");
  if (!source.has("sequence_length")) tokens.fail("the samples of this kind have no sequence_length");
  const int64_t samples = tokens.integer() / source.at("sequence_length").integer();
  if (samples == 0) tokens.fail("fewer than a sample has");
  return samples;
}

}  // namespace

DatasetPtr MixtureOptions::make(const Setting& section, const DataEnvironment& environment) const {
  std::vector<Mixture::Source> made;
  double weights = 0;
  int64_t all = 0;
  for (const Setting& source : sources) {
    const DatasetPtr data = SourceKinds::made<DatasetPtr>(source, environment);
    TUTTI_ASSERT(data, source.at("kind").text());
    made.push_back({source.path + " (" + source.at("kind").text() + ")", data, data->size()});
    all += data->size();
    if (source.has("weight")) weights += source.at("weight").number();
    if (source.has("tokens")) made.back().samples = samples_of_tokens(source);
  }
  const bool weighed = weights > 0;
  if (samples > 0 && !weighed) section.at("samples").fail("the sources have no weights");
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (weighed && !sources[i].has("weight"))
      sources[i].fail("the other sources have weights, and this one has none");
    if (!weighed) continue;
    const double part = sources[i].at("weight").number() / weights;
    made[i].samples = std::llround(part * static_cast<double>(samples > 0 ? samples : all));
    if (made[i].samples == 0) sources[i].at("weight").fail("it gives no sample to an epoch");
  }
  try {
    return std::make_shared<const Mixture>(std::move(made));
  } catch (const UserError& error) {
    section.at("sources").fail(error);
  }
}

}  // namespace tutti
