#include <algorithm>
#include <cstdio>

#include "data/arrays/hdf5_dataset.h"
#include "data/dataset.h"
#include "data/proposals/look.h"
#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

Setting train_section(const std::string& keys) {
  const Catalog catalog = train_data_catalog();
  const std::string recipe = "[data.train]\nbatch_size = 1\n" + keys;
  return resolve(parse_recipe(recipe, folder() + "/r.toml"), std::span(&catalog, 1)).at("data").at("train");
}

// The checksums of headers, which a change of the bytes would break.
std::string with_checksums(std::string tar) {
  constexpr std::size_t kBlock = 512, kMagic = 257, kSum = 148, kSumBytes = 8;
  for (std::size_t at = 0; at + kBlock <= tar.size(); at += kBlock) {
    if (tar.compare(at + kMagic, 5, "ustar") != 0) continue;
    tar.replace(at + kSum, kSumBytes, kSumBytes, ' ');
    unsigned sum = 0;
    for (std::size_t i = at; i < at + kBlock; ++i) sum += static_cast<unsigned char>(tar[i]);
    char digits[kSumBytes + 1];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    tar.replace(at + kSum, kSumBytes, digits, kSumBytes);
  }
  return tar;
}

// As a training reads it.
void read_dataset(const Setting& section) {
  read_or_refuse([&] {
    const DatasetPtr data = make_dataset(section);
    data->spec();
    data->digest();
    data->scan();
    if (data->size() == 0) return;
    const std::vector<int64_t> some = {0, data->size() - 1, data->size() / 2};
    data->get(some, {});
  });
}

// As `tutti init` does.
void propose(const std::string& path) {
  read_or_refuse([&] { look_at(path); });
}

}  // namespace

void idx_images(const std::string& bytes) {
  static const Setting section =
      train_section("kind = 'idx'\nimages = 'idx/images-idx3-ubyte'\nlabels = 'idx/labels-idx1-ubyte'\n");
  write_file("idx/images-idx3-ubyte", bytes);
  write_file("idx/labels-idx1-ubyte", std::string("\0\0\10\1\0\0\0\5\1\2\3\0\1", 13));
  read_dataset(section);
  propose(folder() + "/idx");
}

void idx_labels(const std::string& bytes) {
  static const Setting section =
      train_section("kind = 'idx'\nimages = 'idx/images-idx3-ubyte'\nlabels = 'idx/labels-idx1-ubyte'\n");
  write_file("idx/images-idx3-ubyte",
             std::string("\0\0\10\3\0\0\0\5\0\0\0\2\0\0\0\2", 16) + std::string(20, 'x'));
  write_file("idx/labels-idx1-ubyte", bytes);
  read_dataset(section);
}

void cifar(const std::string& bytes) {
  static const Setting ten = train_section("kind = 'cifar10'\npath = 'data_batch_1.bin'\n");
  static const Setting hundred = train_section("kind = 'cifar100'\npath = 'data_batch_1.bin'\n");
  write_file("data_batch_1.bin", bytes);
  read_dataset(ten);
  read_dataset(hundred);
}

void numpy(const std::string& bytes) {
  static const Setting archive = train_section("kind = 'numpy'\npath = 'a.npz'\n");
  static const Setting array = train_section("kind = 'numpy'\npath = 'arrays'\n");
  const bool is_archive = bytes.starts_with("PK");
  const std::string path = write_file(is_archive ? "a.npz" : "arrays/input.npy", bytes);
  read_dataset(is_archive ? archive : array);
  propose(is_archive ? path : folder() + "/arrays");
}

void csv(const std::string& bytes) {
  static const Setting plain = train_section("kind = 'csv'\npath = 'a.csv'\ntarget = 'kind'\n");
  static const Setting all = train_section(
      "kind = 'csv'\npath = 'a.csv'\ntarget = 'kind'\none_hot = ['city']\nmissing = 'mean'\n"
      "normalize = true\n");
  static const Setting bare = train_section("kind = 'csv'\npath = 'a.csv'\ntarget = '0'\nheader = false\n");
  const std::string path = write_file("a.csv", bytes);
  for (const Setting* section : {&plain, &all, &bare}) read_dataset(*section);
  propose(path);
}

void text_table(const std::string& bytes) {
  static const std::string tokenizer =
      write_file("bert.json", source_file("tests/golden/tokenizers/bert.json"));
  const std::string keys =
      "kind = 'text_table'\npath = 'a.jsonl'\ntokenizer = '" + tokenizer + "'\nsequence_length = 9\n";
  static const Setting plain = train_section(keys + "target = 'mood'\n");
  static const Setting pair = train_section(keys + "text_pair = 'other'\ntarget = ['stars', 'more']\n");
  write_file("a.jsonl", bytes);
  read_dataset(plain);
  read_dataset(pair);
}

void hdf5_data(const std::string& bytes) {
  const std::string path = write_file("data.h5", bytes);
  for (const size_t cache_bytes : {size_t{1} << 20, size_t{0}}) {
    read_or_refuse([&] {
      const Hdf5Dataset data({.path = path, .group = "/", .cache_bytes = cache_bytes});
      data.scan();
      const std::vector<int64_t> some = {0, data.size() - 1, data.size() / 2};
      data.get(some, {});
    });
  }
  propose(path);
}

void tokens(const std::string& bytes) {
  static const Setting section = train_section("kind = 'tokens'\npath = 'tokens.bin'\nsequence_length = 4\n");
  static const Setting wide =
      train_section("kind = 'tokens'\npath = 'tokens.bin'\nsequence_length = 4\ndtype = 'int64'\n");
  const std::string path = write_file("tokens.bin", bytes);
  read_dataset(section);
  read_dataset(wide);
  propose(path);
}

void megatron(const std::string& bytes) {
  static const Setting section = train_section("kind = 'tokens'\npath = 'm.idx'\nsequence_length = 2\n");
  write_file("m.bin", std::string(16, 'x'));
  write_file("m.idx", bytes);
  read_dataset(section);
}

void tar(const std::string& bytes) {
  static const Setting section = train_section("kind = 'webdataset'\npath = 'a.tar'\n");
  const std::string path = write_file("a.tar", with_checksums(bytes));
  read_dataset(section);
  propose(path);
}

}  // namespace tutti::fuzz
