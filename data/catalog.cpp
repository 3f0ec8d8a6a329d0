#include "data/catalog.h"

#include <memory>

#include "data/transforms/options.h"
#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

constexpr double kMostSamples = 1e15;
constexpr double kMostCacheMb = 1e9;
constexpr double kMaxSampleSize = 1e9;  // numbers, tokens, classes

Entry hdf5() {
  return {"hdf5",
          "Arrays of an HDF5 file, side by side: row i of each is sample i.",
          {
              {"path", kPath, "", "the file"},
              {"group", kText, "/", "the group that holds the arrays"},
              {"arrays", kTextsOrNamedTexts, "none",
               "the arrays to read: a list of names, or a table with a model's names for yours, { input = "
               "\"images\", target = \"labels\" }; default: all of the group"},
              Key{"cache_mb", kNumber, "1024",
                  "memory of each process for arrays in chunks (compressed ones), which are decoded once and "
                  "kept; what does not fit is decoded again and again"}
                  .at_least(0)
                  .at_most(kMostCacheMb),
              Key{"num_classes", kInteger, "none", "integer targets are below; default: from the data"}
                  .at_least(1)
                  .at_most(kMaxSampleSize),
          }};
}

std::vector<Key> sequence_keys() {
  return {
      Key{"sequence_length", kInteger, "256", "tokens of a sample"}
          .also_named({"max_sequence_length", "max_seq_len"})
          .at_least(1)
          .at_most(kMaxSampleSize),
      Key{"split", kText, "all", "the part of the file; its last eval_fraction is for evaluation"}.one_of(
          {"all", "train", "eval"}),
      Key{"eval_fraction", kNumber, "0.1", "the fraction of the file for evaluation"}.more_than(0).less_than(
          1),
  };
}

Entry bytes() {
  Entry entry{"bytes",
              "A text file as tokens of one byte, for a language model; a sample's target is the next byte.",
              {{"path", kPath, "", "the file"}}};
  for (auto& key : sequence_keys()) entry.keys.push_back(std::move(key));
  return entry;
}

Entry tokens() {
  Entry entry{
      "tokens",
      "A file of little-endian tokens without a header, for a language model.",
      {{"path", kPath, "", "the file"},
       Key{"dtype", kText, "uint16", "the type of a token in the file"}.one_of(
           {"uint16", "int32", "uint32", "int64"}),
       Key{"vocab_size", kInteger, "none", "tokens are below; default: from the data"}.at_least(1).at_most(
           kMaxSampleSize)}};
  for (auto& key : sequence_keys()) entry.keys.push_back(std::move(key));
  return entry;
}

Entry synthetic() {
  return {
      "synthetic",
      "Random samples drawn from the seed, for benchmarks.",
      {
          Key{"samples", kInteger, "4096", "of an epoch"}.at_least(1).at_most(kMostSamples),
          Key{"shape", kIntegers, "[64]", "of one sample"}.at_least(1).at_most(kMaxSampleSize),
          Key{"targets", kText, "class", "a class for each sample, or the next token for each of a sequence"}
              .one_of({"class", "sequence"}),
          Key{"classes", kInteger, "10", "targets are below (targets = \"class\")"}.at_least(1).at_most(
              kMaxSampleSize),
          Key{"vocab", kInteger, "256", "tokens are below (targets = \"sequence\")"}
              .also_named({"vocab_size"})
              .at_least(1)
              .at_most(kMaxSampleSize),
      }};
}

Key train_or_test() {
  return Key{"split", kText, "train", "the files to train on, or those to test on"}.one_of({"train", "test"});
}

Entry cifar10() {
  return {"cifar10",
          "CIFAR-10's binary version: images uint8 [32, 32, 3]; plain or gzip.",
          {{"path", kPath, "", "the folder with data_batch_1.bin to test_batch.bin, or one such file"},
           train_or_test()}};
}

Entry cifar100() {
  return {
      "cifar100",
      "CIFAR-100's binary version: images uint8 [32, 32, 3]; plain or gzip.",
      {{"path", kPath, "", "the folder with train.bin and test.bin, or one such file"},
       train_or_test(),
       Key{"labels", kText, "fine", "the 100 classes, or the 20 superclasses"}.one_of({"fine", "coarse"})}};
}

Entry mnist() {
  return {"mnist",
          "MNIST, or a dataset in files of the same names: images uint8 [28, 28, 1]; plain or gzip.",
          {{"path", kPath, "", "the folder with train-images-idx3-ubyte and the others"}, train_or_test()}};
}

Entry idx() {
  return {
      "idx",
      "Images and labels in two IDX files, the format of MNIST, of unsigned bytes; plain or gzip.",
      {{"images", kPath, "", "the file of images [samples, height, width], or with channels"},
       {"labels", kPath, "", "the file of labels [samples]"},
       Key{"num_classes", kInteger, "none", "labels are below; default: from the data"}.at_least(1).at_most(
           kMaxSampleSize)}};
}

Key subset_of(const char* what) {
  return Key{"subset_num_batches", kInteger, "-1", std::string(what) + "; -1 = all"}.at_least(-1);
}

std::vector<Key> loading_keys(const char* absent) {
  return {
      Key{"batch_size", kInteger, "none", std::string("samples of a step, all ranks together") + absent}
          .at_least(1)
          .at_most(kMaxBatchSamples),
      Key{"device_batch_size", kInteger, "none", "samples of a step on each rank (Composer's batch_size)"}
          .at_least(1)
          .at_most(kMaxBatchSamples),
      {"shuffle", kBoolean, "false", "a new order each epoch, drawn from the seed"},
      Key{"sampling", kText, "global",
          "global: the ranks share each epoch's samples; own: each rank reads all samples of its own file, "
          "with {rank} and {host} in the path"}
          .one_of({"global", "own"}),
      Key{"on_uneven", kText, "error",
          "for sampling = \"own\", if the ranks' files differ in length; shortest: an epoch is as long as "
          "the shortest file"}
          .one_of({"error", "shortest"}),
      {"drop_last", kBoolean, "false", "leave out the short batch that ends an epoch"},
      Key{"prefetch", kInteger, "2", "batches loaded ahead"}
          .also_named({"prefetch_factor"})
          .at_least(1)
          .at_most(1000),
      Key{"num_workers", kInteger, "0",
          "threads of a rank that read and transform the samples of a batch; 0: the one that loads ahead. "
          "Any number gives the same bits"}
          .at_least(0)
          .at_most(256),
      Key{"layout", kText, "none",
          "dimensions of 'input' in the file, with N samples: it becomes float32 NCHW, as models take it; "
          "when absent, "
          "floats stay as they are, and uint8 images too unless scale, mean, std or transforms are given, "
          "which take them as NHWC, "
          "or NCHW if only their first dimension is at most 4"}
          .one_of({"NHWC", "NCHW"}),
      Key{"scale", kNumberOrNumbers, "none",
          "with mean and std: 'input' becomes float32 (input * scale - mean) / std, after all transforms; "
          "one number, or one for each channel; 1/255 for uint8 when absent, else 1"}
          .more_than(0),
      {"mean", kNumberOrNumbers, "none", "one number, or one for each channel; 0 when absent"},
      Key{"std", kNumberOrNumbers, "none", "one number, or one for each channel; 1 when absent"}.more_than(0),
      Key{"transforms", kTables, "none", "what happens to each sample, in this order"}.each(
          std::make_shared<const Catalog>(transform_catalog())),
  };
}

Catalog data_catalog(const char* section, const char* doc, std::vector<Key> keys) {
  return {.section = section,
          .noun = "dataset",
          .doc = doc,
          .keys = std::move(keys),
          .entries = {hdf5(),
                      bytes(),
                      tokens(),
                      synthetic(),
                      cifar10(),
                      cifar100(),
                      mnist(),
                      idx(),
                      plugin_entry("dataset"),
                      {"program", "The dataset of the training program (commands/trainer.h)."}}};
}

}  // namespace

Catalog train_data_catalog() {
  Catalog catalog =
      data_catalog("data.train", "The training data. Give exactly one of batch_size and device_batch_size.",
                   loading_keys(""));
  catalog.keys.push_back(subset_of("batches of an epoch").also_named({"train_subset_num_batches"}));
  catalog.alternatives = {{{"batch_size", "device_batch_size"}, true}};
  return catalog;
}

Catalog eval_data_catalog() {
  Catalog catalog =
      data_catalog("data.eval", "The evaluation data. Only the batch size defaults to that of [data.train].",
                   loading_keys("; default: as in training"));
  catalog.keys.push_back(subset_of("batches of an evaluation").also_named({"eval_subset_num_batches"}));
  catalog.default_kind = "none";
  catalog.alternatives = {{{"batch_size", "device_batch_size"}}};
  return catalog;
}

DataSettings DataSettings::read(const Setting& section) {
  return {section.at("shuffle").boolean(), section.at("drop_last").boolean(),
          section.at("subset_num_batches").integer(), static_cast<int>(section.at("prefetch").integer()),
          static_cast<int>(section.at("num_workers").integer())};
}

}  // namespace tutti
