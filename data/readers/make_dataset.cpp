#include "data/readers/make_dataset.h"

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

#include "data/readers/cifar.h"
#include "data/readers/hdf5_dataset.h"
#include "data/readers/idx.h"
#include "data/readers/recipe_transforms.h"
#include "data/readers/synthetic_dataset.h"
#include "data/readers/token_dataset.h"
#include "recipe/placeholders.h"
#include "runtime/random.h"
#include "tensors/meter.h"

namespace tutti {
namespace {

// Keys that name files.
constexpr const char* kFileKeys[] = {"path", "images", "labels"};

// Adds the recipe's line that names the file, or the missing group or arrays, to the error.
DatasetPtr opened(const Setting& section, const std::function<DatasetPtr()>& open) try {
  return open();
} catch (const MissingArrays& error) {
  const Setting& key = section.at(error.option);
  const Setting* named = key.is_table() ? key.find(error.array) : nullptr;
  (named ? *named : key).fail(section.at("path").as_written() + ": " + error.message());
} catch (const WrongTokenType& error) {
  section.at("dtype").fail(error);
} catch (const UserError& error) {
  section.at("path").fail(error);
}

// A table has batches' names for those of the file.
void name_arrays(const Setting& arrays, Hdf5Dataset::Options& options) {
  if (!arrays.is_table()) {
    options.arrays = arrays.texts();
    return;
  }
  for (const auto& [name, stored] : arrays.table()) {
    if (stored.text().find_first_not_of('/') == std::string::npos)
      stored.fail("expected the name of an array");
    options.arrays.push_back(name);
    options.stored_as[name] = stored.text();
  }
}

DatasetPtr make_hdf5(const Setting& section, int64_t ignore_index) {
  Hdf5Dataset::Options options;
  options.path = section.at("path").text();
  options.group = section.at("group").text();
  options.ignore_index = ignore_index;
  if (section.has("arrays")) name_arrays(section.at("arrays"), options);
  if (section.has("num_classes")) options.num_classes = section.at("num_classes").integer();
  if (section.has("cache_mb"))
    options.cache_bytes = static_cast<std::size_t>(section.at("cache_mb").number() * kBytesPerMb);
  return opened(section, [&] {
    const auto dataset = std::make_shared<const Hdf5Dataset>(options);
    dataset->digest();  // reads some rows, so that an unreadable file is an error now
    return dataset;
  });
}

TokenDataset::Split split_of(const Setting& setting) {
  const std::string& name = setting.text();
  if (name == "all") return TokenDataset::Split::kAll;
  if (name == "train") return TokenDataset::Split::kTrain;
  if (name == "eval") return TokenDataset::Split::kEval;
  setting.fail("expected all, train or eval");
}

TokenDataset::Format format_of(const Setting& section) {
  using enum TokenDataset::Format;
  static const std::map<std::string, TokenDataset::Format> formats = {
      {"uint16", kUint16}, {"int32", kInt32}, {"uint32", kUint32}, {"int64", kInt64}};
  return section.at("kind").text() == "bytes" ? kBytes : formats.at(section.at("dtype").text());
}

DatasetPtr make_tokens(const Setting& section) {
  TokenDataset::Options options;
  options.path = section.at("path").text();
  options.format = format_of(section);
  options.sequence_length = section.at("sequence_length").integer();
  options.split = split_of(section.at("split"));
  options.eval_fraction = section.at("eval_fraction").number();
  if (section.has("vocab_size")) options.vocab_size = section.at("vocab_size").integer();
  return opened(section, [&] { return std::make_shared<const TokenDataset>(options); });
}

DatasetPtr make_synthetic(const Setting& section, uint64_t seed) {
  SyntheticDataset::Options options;
  options.samples = section.at("samples").integer();
  options.shape = section.at("shape").integers();
  options.seed = seed;
  const bool sequence = section.at("targets").text() == "sequence";
  if (sequence && options.shape.size() != 1)
    section.at("shape").fail("a sequence has one dimension, its length");
  options.targets = sequence ? SyntheticDataset::Targets::kSequence : SyntheticDataset::Targets::kClass;
  options.classes = section.at(sequence ? "vocab" : "classes").integer();
  return std::make_shared<const SyntheticDataset>(options);
}

bool is_test(const Setting& section) { return section.at("split").text() == "test"; }

DatasetPtr make_cifar(const Setting& section, CifarOptions::Labels labels) {
  const CifarOptions options{section.at("path").text(), labels, is_test(section)};
  return opened(section, [&] { return open_cifar(options); });
}

CifarOptions::Labels labels_of_cifar100(const Setting& section) {
  return section.at("labels").text() == "coarse" ? CifarOptions::Labels::kCoarse
                                                 : CifarOptions::Labels::kFine;
}

DatasetPtr make_mnist(const Setting& section) {
  return opened(section, [&] { return open_idx(mnist_files(section.at("path").text(), is_test(section))); });
}

// The error names its file; the key is the one with that file.
DatasetPtr make_idx(const Setting& section, int64_t ignore_index) {
  IdxOptions options{section.at("images").text(), section.at("labels").text()};
  options.ignore_index = ignore_index;
  if (section.has("num_classes")) options.num_classes = section.at("num_classes").integer();
  try {
    return open_idx(options);
  } catch (const UserError& error) {
    const bool of_labels = error.position().file == options.labels;
    section.at(of_labels ? "labels" : "images").fail(error);
  }
}

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

const Setting& key_of_data(const Setting& section) {
  for (const char* key : kFileKeys)
    if (section.has(key)) return section.at(key);
  return section.at("sampling");
}

void require_same_layout(const Setting& section, const std::vector<Facts>& ranks) {
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].layout != ranks[0].layout)
      key_of_data(section).fail("the samples of rank " + std::to_string(r) +
                                " have other arrays or shapes than those of rank 0");
}

void require_even(const Setting& section, const std::vector<Facts>& ranks) {
  const auto differs = [&](const Facts& one) { return one.samples != ranks[0].samples; };
  if (section.at("on_uneven").text() == "shortest" || std::none_of(ranks.begin(), ranks.end(), differs))
    return;
  std::string counts;
  for (const Facts& one : ranks) counts += (counts.empty() ? "" : ", ") + std::to_string(one.samples);
  key_of_data(section).fail("the ranks have " + counts +
                            " samples; on_uneven = \"shortest\" makes an epoch as long as the shortest");
}

}  // namespace

namespace {

DatasetPtr make_untransformed(const Setting& section, uint64_t seed, int64_t ignore_index) {
  const std::string& kind = section.at("kind").text();
  if (kind == "hdf5") return make_hdf5(section, ignore_index);
  if (kind == "bytes" || kind == "tokens") return make_tokens(section);
  if (kind == "synthetic") return make_synthetic(section, seed);
  if (kind == "cifar10") return make_cifar(section, CifarOptions::Labels::kTen);
  if (kind == "cifar100") return make_cifar(section, labels_of_cifar100(section));
  if (kind == "mnist") return make_mnist(section);
  if (kind == "idx") return make_idx(section, ignore_index);
  if (kind == "program")
    section.at("kind").fail("the program that reads the recipe provides no data for " + section.path);
  section.at("kind").fail("there is no such dataset");
}

}  // namespace

DatasetPtr make_dataset(const Setting& section, uint64_t seed, const std::string& owner,
                        int64_t ignore_index) {
  return with_recipe_transforms(section, make_untransformed(section, seed, ignore_index), owner,
                                ignore_index);
}

const DatasetPtr& PerRankData::of(int rank, const DatasetPtr& shared) const {
  const auto r = static_cast<std::size_t>(rank);
  return empty() || !of_rank[r] ? shared : of_rank[r];
}

int64_t PerRankData::samples_of_all(int world, const DatasetPtr& shared) const {
  return empty() ? shared->size() : samples * world;
}

SampleSpec PerRankData::spec(const DatasetPtr& shared) const {
  SampleSpec spec = shared->spec();
  if (!empty()) spec.classes = classes;
  return spec;
}

bool has_per_rank_data(const Setting& section) {
  const bool is_own = section.at("sampling").text() == "own";
  for (const char* key : kFileKeys) {
    if (!section.has(key)) continue;
    const Setting& path = section.at(key);
    if (is_own) require_placeholders(path, kPlaceholders);
    for (const auto& name : kPlaceholders)
      if (!is_own && path.text().find('{' + name + '}') != std::string::npos)
        path.fail('{' + name + "} stands for a file of each rank's own; that is " +
                  section.at("sampling").path + " = \"own\"");
  }
  return is_own;
}

DatasetPtr make_per_rank_dataset(const Setting& section, uint64_t seed, const DataPlace& place,
                                 int64_t ignore_index) {
  Setting own = section;
  for (const char* key : kFileKeys) {
    if (!own.has(key)) continue;
    Setting& named = *own.find(key);
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
  for (const Facts& one : ranks) {
    data.samples = std::min(data.samples, one.samples);
    data.classes = std::max(data.classes, one.classes);
    all = all.fold_in(one.digest);
  }
  data.digest = all.bits();
}

}  // namespace tutti
