#include "data/readers/make_dataset.h"

#include <functional>

#include "data/readers/hdf5_dataset.h"
#include "data/readers/synthetic_dataset.h"
#include "data/readers/token_dataset.h"

namespace tutti {
namespace {

// What is wrong with a file is the user's to mend in the recipe's line that names it, or what it lacks.
DatasetPtr opened(const Setting& section, const std::function<DatasetPtr()>& open) try {
  return open();
} catch (const MissingArrays& error) {
  section.at(error.option).fail(error.what());
} catch (const UserError& error) {
  section.at("path").fail(error.what());
}

DatasetPtr make_hdf5(const Setting& section) {
  Hdf5Dataset::Options options;
  options.path = section.at("path").text();
  options.group = section.at("group").text();
  if (section.has("arrays")) options.arrays = section.at("arrays").texts();
  if (section.has("num_classes")) options.num_classes = section.at("num_classes").integer();
  return opened(section, [&] {
    const auto dataset = std::make_shared<const Hdf5Dataset>(options);
    dataset->digest();  // reads some rows, so that what cannot be read is found now
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

DatasetPtr make_tokens(const Setting& section, TokenDataset::Format format) {
  TokenDataset::Options options;
  options.path = section.at("path").text();
  options.format = format;
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

}  // namespace

DatasetPtr make_dataset(const Setting& section, uint64_t seed) {
  const std::string& kind = section.at("kind").text();
  if (kind == "hdf5") return make_hdf5(section);
  if (kind == "bytes") return make_tokens(section, TokenDataset::Format::kBytes);
  if (kind == "tokens") return make_tokens(section, TokenDataset::Format::kUint16);
  if (kind == "synthetic") return make_synthetic(section, seed);
  if (kind == "program")
    section.at("kind").fail("the program that reads the recipe brings no data for " + section.path);
  section.at("kind").fail("expected hdf5, bytes, tokens or synthetic");
}

}  // namespace tutti
