#include "data/readers/make_dataset.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "data/mixture.h"
#include "data/readers/opened.h"
#include "data/readers/options.h"
#include "data/readers/recipe_transforms.h"
#include "data/readers/task_options.h"
#include "recipe/command_keys.h"
#include "recipe/placeholders.h"
#include "runtime/printable.h"
#include "runtime/random.h"

namespace tutti {
namespace {

const std::vector<std::string> kPlaceholders = {"rank", "host"};

struct Facts {
  int64_t samples = 0;
  int64_t classes = 0;
  uint64_t digest = 0;
  uint64_t layout = 0;
};

uint64_t layout_of(const SampleSpec& spec) {
  std::string text;
  for (const auto& [array, shape] : spec.shapes) text += array + ' ' + spec.describe(array) + '\n';
  return RandomKey(0, text).bits();
}

Facts parsed(const std::string& text) {
  Facts facts;
  std::istringstream(text) >> facts.samples >> facts.classes >> facts.digest >> facts.layout;
  return facts;
}

void require_same_layout(const Setting& section, const std::vector<Facts>& ranks) {
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].layout != ranks[0].layout)
      key_of_data(section).fail("the samples of rank " + std::to_string(r) +
                                " have other arrays or shapes than those of rank 0");
}

void require_even(const Setting& section, const std::vector<Facts>& ranks) {
  const auto differs = [&](const Facts& one) { return one.samples != ranks[0].samples; };
  if (DataSettings::read(section).on_uneven == "shortest" ||
      std::none_of(ranks.begin(), ranks.end(), differs))
    return;
  std::string counts;
  for (const Facts& facts : ranks) counts += (counts.empty() ? "" : ", ") + std::to_string(facts.samples);
  key_of_data(section).fail("the ranks have " + counts +
                            " samples; on_uneven = \"shortest\" makes an epoch as long as the shortest");
}

}  // namespace

namespace {

DatasetPtr make_untransformed(const Setting& section, const DataEnvironment& environment) {
  const std::string& kind = section.at("kind").text();
  if (DatasetPtr made = DataKinds::made<DatasetPtr>(section, environment)) return made;
  if (DatasetPtr made = TaskKinds::made<DatasetPtr>(section)) return made;
  if (kind == "program")
    section.at("kind").fail("the program that reads the recipe provides no data for " + section.path);
  section.at("kind").fail("there is no such dataset");
}

}  // namespace

DatasetPtr make_dataset(const Setting& section, uint64_t seed, const std::string& owner, int64_t ignore_index,
                        const std::optional<std::string>& fitted) {
  return with_recipe_transforms(section, make_untransformed(section, {seed, ignore_index, fitted}), owner,
                                ignore_index);
}

const DatasetPtr& PerRankData::of(int rank, const DatasetPtr& shared) const {
  const auto r = static_cast<std::size_t>(rank);
  return empty() || !datasets[r] ? shared : datasets[r];
}

int64_t PerRankData::samples_of_all(int data_world, const DatasetPtr& shared) const {
  return empty() ? shared->size() : samples * data_world;
}

SampleSpec PerRankData::spec(const DatasetPtr& shared) const {
  SampleSpec spec = shared->spec();
  if (!empty()) spec.classes = classes;
  return spec;
}

bool has_per_rank_data(const Setting& section) {
  const auto sampling = DataSettings::read(section).sampling;
  const bool is_own = sampling == DataSettings::Sampling::kOwn;
  for (const char* key : kFileKeys) {
    if (!section.has(key)) continue;
    const Setting& path = section.at(key);
    const bool has_braces = names_command(path.path);  // of the shell
    if (is_own && !has_braces) require_placeholders(path, kPlaceholders);
    for (const auto& name : kPlaceholders)
      if (!is_own && path.text().find('{' + name + '}') != std::string::npos)
        path.fail('{' + name + "} stands for a file of each rank's own; that is " + sampling.key.path +
                  " = \"own\"");
  }
  return is_own;
}

namespace {

// The shell would run what a name of another form has in it.
void require_plain_host(const Setting& command, const std::string& host) {
  if (!is_plain_word(host) && command.text().find("{host}") != std::string::npos)
    command.fail("{host} is " + shown(host) + "; of what stands in a command, " + kPlainCharacters);
}

}  // namespace

DatasetPtr make_per_rank_dataset(const Setting& section, uint64_t seed, const DataPlace& place,
                                 int64_t ignore_index) {
  Setting own = section;
  for (const char* key : kFileKeys) {
    if (!own.has(key)) continue;
    Setting& named = *own.find(key);
    if (names_command(named.path)) require_plain_host(named, place.host);
    for (std::string* path : {&std::get<std::string>(named.value), &named.written}) {
      replace_all(*path, "{rank}", std::to_string(place.rank));
      replace_all(*path, "{host}", place.host);
    }
  }
  return make_dataset(own, seed + static_cast<uint64_t>(place.rank), owner_of(place.rank), ignore_index);
}

std::string owner_of(int rank) { return "rank " + std::to_string(rank) + "/"; }

std::string facts_text(const Dataset& dataset) {
  std::ostringstream out;
  const SampleSpec spec = dataset.spec();
  out << dataset.size() << ' ' << spec.classes << ' ' << dataset.digest() << ' ' << layout_of(spec);
  return out.str();
}

void merge_facts(PerRankData& data, const Setting& section, const std::vector<std::string>& facts) {
  std::vector<Facts> ranks;
  for (const std::string& text : facts) ranks.push_back(parsed(text));
  require_same_layout(section, ranks);
  require_even(section, ranks);
  data.samples = ranks[0].samples;
  RandomKey all(ranks.size(), "own data");
  for (const Facts& facts : ranks) {
    data.samples = std::min(data.samples, facts.samples);
    data.classes = std::max(data.classes, facts.classes);
    all = all.fold_in(facts.digest);
  }
  data.digest = all.bits();
}

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
    if (source.has("command"))
      source.at("command").fail(
          "what a command writes is read in its order, and a mixture draws from all samples of its sources");
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
