#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "data/arrays/hdf5_dataset.h"
#include "data/readers/benchmarks/cifar.h"
#include "data/readers/benchmarks/idx.h"
#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "data/readers/token_dataset.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/saved_state.h"
#include "io/foreign/foreign_checkpoint.h"
#include "io/formats/event_file.h"
#include "io/formats/safetensors.h"
#include "io/hdf5/hdf5.h"
#include "io/hdf5/hdf5_listing.h"
#include "io/hdf5/hdf5_writer.h"
#include "io/journal/journal_reader.h"
#include "io/journal/journal_writer.h"
#include "io/journal/recorded_run.h"
#include "io/json/json_line.h"
#include "io/line_file.h"
#include "io/weights/weights.h"
#include "job/recipe_catalogs.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/hashes.h"
#include "sim/faults/fault_plan.h"
#include "tests/data/readers/idx_text.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/io/formats/gzipped.h"
#include "tests/io/hdf5/chunked_file.h"
#include "tests/io/reads_parquet.h"
#include "tests/io/weights/torch_archive.h"
#include "tests/runtime/mutation.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

// Without tensors of sizes that no weights in these tests have.
void read_small_weights(const std::string& path) {
  const PosixDisk disk;
  const auto weights = open_weights(disk, path);
  for (const auto& [name, entry] : weights->entries())
    if (std::ranges::all_of(entry.shape, [](int64_t size) { return size <= 1000; })) read_all(*weights, name);
}

// Mutated files of one kind are read to their end, or are refused with an error that the program knows. One
// that the reader crashes over stays in the scratch folder.
class MutationsTest : public testing::Test {
 protected:
  using Change = std::function<std::string(const std::string& good, Mutation mutation)>;

  void SetUp() override { write_checkpoint(disk_, checkpoint_, sample_tensors(), 2, RunState().to_json()); }

  // `names_file`: errors of this kind name the file.
  void read_mutated(
      const std::string& path, const std::function<void()>& read, bool names_file = true,
      const Change& change = [](const std::string& good, Mutation mutation) { return mutation.of(good); }) {
    const std::string good = read_text(path);
    read();
    for (int i = 0; i < mutations(); ++i) {
      write_text(path, change(good, Mutation(i)));
      const std::string error = error_of(read);
      refused_ += !error.empty();
      const bool is_named = error.empty() || error.find(scratch_.path()) != std::string::npos;
      EXPECT_TRUE(is_named || !names_file) << i << ": " << error;
    }
    if (refuses_) EXPECT_GT(refused_, 0);
  }

  static std::string error_of(const std::function<void()>& read) {
    try {
      read();
      return "";
    } catch (const UserError& error) {
      return error.what();
    } catch (const OperatingError& error) {
      return error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "an error of another kind: " << error.what();
      return "";
    }
  }

  Scratch scratch_;
  PosixDisk disk_;
  std::string checkpoint_ = scratch_.path("checkpoint");
  int refused_ = 0;
  bool refuses_ = true;
};

TEST_F(MutationsTest, OfSafetensors) {
  const std::string path = scratch_.path("a.safetensors");
  write_safetensors(disk_, path, {sample_tensors(), {{"format", "pt"}}});
  read_mutated(path, [&] { read_small_weights(path); });
}

TEST_F(MutationsTest, OfTheHeaderOfSafetensors) {
  const std::string path = scratch_.path("a.safetensors");
  write_safetensors(disk_, path, {sample_tensors(), {{"format", "pt"}}});
  read_mutated(
      path, [&] { read_small_weights(path); }, true,
      [](const std::string& good, Mutation mutation) {
        uint64_t length = 0;
        std::memcpy(&length, good.data(), 8);
        const std::string header = mutation.of(good.substr(8, length)), rest = good.substr(8 + length);
        length = header.size();
        return std::string(reinterpret_cast<const char*>(&length), 8) + header + rest;
      });
}

TEST_F(MutationsTest, OfATorchFile) {
  const std::string path = scratch_.path("a.pt"), two = Pickled::number(2), one = Pickled::number(1);
  const std::string tensor =
      Pickled::tensor(Pickled::storage("FloatStorage", "0", 4), 0, two + two, one + two);
  const std::string pickle = Pickled::whole(Pickled::dict(Pickled::text("w") + tensor));
  write_torch_archive(path, pickle, {{"0", std::string(16, 'x')}});
  read_mutated(path, [&] { read_small_weights(path); });
  for (int i = 0; i < mutations(); ++i) {
    write_torch_archive(path, Mutation(i).of(pickle), {{"0", std::string(16, 'x')}});
    const std::string error = error_of([&] { read_small_weights(path); });
    EXPECT_TRUE(error.empty() || error.starts_with(path)) << i << ": " << error;
  }
}

TEST_F(MutationsTest, OfCheckpointsOfComposer) {
  const std::filesystem::path golden = TUTTI_SOURCE_DIR "/tests/golden/composer_checkpoints";
  std::filesystem::copy(golden, scratch_.path("theirs"), std::filesystem::copy_options::recursive);
  const auto read = [&](const std::string& path) {
    const Checkpoint checkpoint = foreign_checkpoint(disk_, path);
    state_of(checkpoint);
    all_of(CheckpointTensors(disk_, checkpoint));
  };
  const std::string whole = scratch_.path("theirs/whole.pt"), sharded = scratch_.path("theirs/sharded");
  read_mutated(whole, [&] { read(whole); });
  read_mutated(sharded + "/.metadata", [&] { read(sharded); });
}

TEST_F(MutationsTest, OfAnIndexOfWeights) {
  const std::string path = scratch_.path("model.safetensors.index.json");
  write_safetensors(disk_, scratch_.path("a.safetensors"), {sample_tensors(), {}});
  std::string map;
  for (const auto& [name, tensor] : sample_tensors())
    map += (map.empty() ? "\"" : ", \"") + name + "\": \"a.safetensors\"";
  write_text(path, R"({"metadata": {}, "weight_map": {)" + map + "}}");
  read_mutated(path, [&] { read_small_weights(path); });
}

TEST_F(MutationsTest, OfACheckpointsManifest) {
  read_mutated(checkpoint_ + "/manifest.json", [&] { read_checkpoint(disk_, checkpoint_); });
}

TEST_F(MutationsTest, OfAManifestWhoseHashIsRight) {
  const auto rehashed = [](const std::string& good, Mutation mutation) {
    const std::string before = R"({"hash":")", between = R"(","manifest":)";
    const std::string body = good.substr(before.size() + 16 + between.size());
    const std::string mutated = mutation.of(body.substr(0, body.size() - 1));
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(mutated.data(), mutated.size())));
    return before + hash + between + mutated + "}";
  };
  const auto read = [&] { RunState::from_json(read_checkpoint(disk_, checkpoint_).state); };
  read_mutated(checkpoint_ + "/manifest.json", read, false, rehashed);
}

TEST_F(MutationsTest, OfARanksFileAreAllRefused) {
  const std::string path = checkpoint_ + "/rank-1.h5", good = read_text(path);
  int changed = 0;
  read_mutated(path, [&] {
    changed += read_text(path) != good;
    read_checkpoint(disk_, checkpoint_);
  });
  EXPECT_EQ(refused_, changed);
}

TEST_F(MutationsTest, OfWeights) {
  const std::string path = checkpoint_ + "/rank-0.h5";
  read_mutated(path, [&] { read_small_weights(path); });
}

TEST_F(MutationsTest, OfARunsState) {
  const std::string path = scratch_.path("state.json");
  write_text(path, RunState().to_json());
  read_mutated(
      path, [&] { RunState::from_json(read_text(path)); }, false);
}

std::string cifar_text() {
  std::string text;
  for (int image = 0; image < 3; ++image)
    text += static_cast<char>(image) + std::string(3 * 32 * 32, static_cast<char>(17 * image));
  return text;
}

TEST_F(MutationsTest, OfCifarImages) {
  const std::string path = scratch_.path("data_batch_1.bin");
  write_text(path, cifar_text());
  read_mutated(path, [&] { open_cifar({path}); });
}

TEST_F(MutationsTest, OfGzippedCifarImages) {
  const std::string path = scratch_.path("data_batch_1.bin.gz");
  write_text(path, gzipped(cifar_text()));
  read_mutated(path, [&] { open_cifar({path}); });
}

TEST_F(MutationsTest, OfIdxImagesAndLabels) {
  const std::string images = scratch_.path("images"), labels = scratch_.path("labels");
  write_text(images, idx_text({5, 4, 3}, std::string(60, 'x')));
  write_text(labels, idx_text({5}, std::string(5, '\3')));
  for (const std::string& path : {images, labels}) {
    const std::string good = read_text(path);
    read_mutated(path, [&] { open_idx({images, labels})->digest(); });
    write_text(path, good);
  }
}

std::string golden(const std::string& name) {
  return read_text(TUTTI_SOURCE_DIR "/tests/golden/numpy/" + name);
}

TEST_F(MutationsTest, OfArraysOfNumpy) {
  const std::string recipe = "[data.train]\nkind = 'numpy'\nbatch_size = 1\npath = '" +
                             scratch_.path("a.npz") + "'\narrays = {input = 'wide', target = 'labels'}\n";
  const Catalog catalog = train_data_catalog();
  const Setting section =
      resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train");
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    write_text(scratch_.path("a.npz"), golden(name));
    read_mutated(scratch_.path("a.npz"), [&] { make_dataset(section)->scan(); });
  }
}

TEST_F(MutationsTest, OfTables) {
  const Catalog catalog = train_data_catalog();
  for (const std::string name : {"holes.csv", "quoted.csv", "holes.parquet", "zstd.parquet"}) {
    const std::string kind = name.substr(name.find('.') + 1), path = scratch_.path(name);
    if (kind == "parquet" && !reads_parquet()) continue;
    const std::string recipe = "[data.train]\nkind = '" + kind + "'\nbatch_size = 1\npath = '" + path +
                               "'\ntarget = 'kind'\none_hot = ['city']\nmissing = 'mean'\n";
    const Setting section =
        resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train");
    write_text(path, read_text(TUTTI_SOURCE_DIR "/tests/golden/tables/" + name));
    read_mutated(path, [&] { make_dataset(section)->scan(); });
  }
}

TEST_F(MutationsTest, OfTokensWithAHeader) {
  const std::string npy = scratch_.path("t.npy"), index = scratch_.path("t.idx");
  write_text(npy, golden("tokens.npy"));
  read_mutated(npy, [&] { TokenDataset({.path = npy, .format = {}, .sequence_length = 2}).scan(); });
  std::string header("MMIDIDX\0\0\1\0\0\0\0\0\0\0\x08", 18);
  for (const uint64_t count : {2, 3}) header.append(reinterpret_cast<const char*>(&count), 8);
  for (const int32_t length : {5, 3}) header.append(reinterpret_cast<const char*>(&length), 4);
  for (const int64_t number : {0, 10, 0, 1, 2}) header.append(reinterpret_cast<const char*>(&number), 8);
  write_text(scratch_.path("t.bin"), std::string(16, 'x'));
  write_text(index, header);
  read_mutated(index, [&] { TokenDataset({.path = index, .format = {}, .sequence_length = 2}).scan(); });
}

void write_data(Disk& disk, const std::string& path) {
  write_hdf5(disk, path,
             {hdf5_array("train/input", at::rand({6, 4})),
              hdf5_array("train/target", at::arange(6).remainder(3), {{"num_classes", int64_t{3}}})});
}

void read_data(const std::string& path) {
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5};
  const Hdf5Dataset data({.path = path, .group = "train"});
  data.scan();
  if (data.size() >= 6) data.get(all, {});
}

TEST_F(MutationsTest, OfHdf5Data) {
  const std::string path = scratch_.path("data.h5");
  write_data(disk_, path);
  read_mutated(path, [&] { read_data(path); });
}

// Reads the file like `tutti init`, and like a training, with and without a cache.
void read_as_programs_do(const std::string& path) {
  for (const ListedArray& array : list_hdf5(path))
    if (array.numbers != ListedArray::Numbers::kOther && !array.shape.empty()) first_rows(path, array, 4);
  for (const size_t cache_bytes : {size_t{1} << 20, size_t{0}}) {
    const Hdf5Dataset data({.path = path, .group = "train", .cache_bytes = cache_bytes});
    data.scan();
    const std::vector<int64_t> some = {0, data.size() - 1, data.size() / 2};
    data.get(some, {});
  }
}

TEST_F(MutationsTest, OfChunkedHdf5Data) {
  const std::string path = scratch_.path("data.h5");
  const at::Tensor values = at::arange(40 * 6, at::kFloat).view({40, 6});
  for (const auto& options :
       {ChunkedOptions{.chunk = {7, 4}}, ChunkedOptions{.chunk = {1, 6}, .gzip = true},
        ChunkedOptions{.chunk = {7, 4}, .gzip = true, .shuffle = true, .checksum = true},
        ChunkedOptions{.chunk = {16, 8}, .shuffle = true, .may_grow = true, .big_endian = true}}) {
    write_chunked(path, "train/input", values, options);
    read_mutated(path, [&] { read_as_programs_do(path); });
  }
}

// Not of the virtual dataset itself: libhdf5 1.10 ends the process on some damaged mappings.
TEST_F(MutationsTest, OfASourceOfVirtualHdf5Data) {
  const std::string path = scratch_.path("data.h5"), source = scratch_.path("source.h5");
  write_chunked(source, "train/input", at::arange(20, at::kFloat).view({4, 5}),
                {.chunk = {2, 5}, .gzip = true});
  const Hdf5VirtualArray array{"train/input", {4, 5}, at::kFloat, {{"source.h5", {0, 0}, {4, 5}}}};
  write_hdf5_view(disk_, path, {{array}, {}, {}});
  read_mutated(source, [&] { Hdf5File(path).read("train/input"); });
}

// A B-tree's node whose child is at the largest address: libhdf5's metadata accumulator would copy from
// outside of its memory.
TEST_F(MutationsTest, OfAnHdf5AddressThatIsTheLargestNumber) {
  const std::string path = scratch_.path("data.h5");
  write_data(disk_, path);
  const std::string good = read_text(path);
  for (std::size_t node = good.find("TREE"); node != std::string::npos; node = good.find("TREE", node + 1)) {
    write_text(path, std::string(good).replace(node + 32, 8, 8, '\xff'));
    EXPECT_THAT(error_of([&] { read_data(path); }), testing::HasSubstr(path));
  }
}

TEST_F(MutationsTest, OfTokens) {
  const std::string path = scratch_.path("tokens.bin");
  write_text(path, std::string(400, '\1'));
  read_mutated(path, [&] {
    const TokenDataset data(
        {.path = path, .format = TokenDataset::Format::kUint16, .sequence_length = 8, .vocab_size = 1000});
    data.scan();
  });
}

TEST_F(MutationsTest, OfAFaultPlan) {
  const std::string path = scratch_.path("faults.toml");
  write_text(path, read_text(TUTTI_SOURCE_DIR "/examples/faults/all.toml"));
  read_mutated(path, [&] { read_fault_plan(path, 4); });
}

void read_journal(const std::string& path) {
  JournalCursor cursor(path);
  while (const auto record = cursor.next())
    if (const auto* head = std::get_if<JournalHead>(&*record)) RecordedJob::from_json(head->json);
  cursor.torn_bytes();
}

TEST_F(MutationsTest, OfAJournal) {
  const std::string path = scratch_.path("journal-0");
  JournalWriter writer(path, RecordedJob().to_json());
  writer.delivery("compute", "loader", "BatchReady", TimePoint());
  writer.parts("gradient", {"weight", "", "bias"});
  writer.digest("gradient", 3, 7, std::vector<uint16_t>{1, 2, 3});
  writer.input("disk", {});
  writer.end("done");
  refuses_ = false;  // but for its first 12 bytes: what is behind other damage is ignored
  read_mutated(
      path, [&] { read_journal(path); }, false);
}

TEST_F(MutationsTest, OfRecordsWhoseChecksumsAreRight) {
  const std::string path = scratch_.path("journal-0");
  const std::string payload("\3\1\0\2\200\200\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0\7", 19);
  const auto preamble = journal_preamble();
  RecordEncoder encoder;
  for (int i = 0; i < mutations(); ++i) {
    std::string bytes(preamble.begin(), preamble.end());
    encoder.begin(static_cast<JournalKind>(1 + i % 10));
    const std::string mutated = Mutation(i).of(payload);
    encoder.raw(std::as_bytes(std::span(mutated)));
    const auto record = encoder.finish(bytes.size());
    write_text(path, bytes.append(record.begin(), record.end()));
    error_of([&] { read_journal(path); });
  }
}

TEST_F(MutationsTest, OfLinesOfMetrics) {
  const std::string path = scratch_.path("metrics.jsonl");
  write_text(path,
             "{\"step\": 1, \"epoch\": 0, \"loss\": 2.5}\n{\"step\": 2, \"metrics/eval/A\": \"nan\"}\n");
  const auto step_of = [](const std::string& line) { return json_integer(line, "step", -1); };
  const auto read = [&] {
    for (const std::string& line : LineFile(disk_, path, step_of, [](const std::string&) {}).resume(2))
      for (const auto& key : json_keys(line)) json_number(line, key);
  };
  read_mutated(path, read, false);
}

TEST_F(MutationsTest, OfAnEventFile) {
  const std::string path = scratch_.path("events");
  EventFile file(disk_, path, 0);
  file.restart(1, 0);
  file.scalars({{"loss", 1}}, 1, 0);
  file.image("a", {1, 1, 1, "png"}, 2, 0);
  file.text("a", "text", 3, 0);
  file.flush(false);
  refuses_ = false;  // what is damaged ends the file, or a record
  read_mutated(path, [&] {
    records_of_step(disk_, {path}, 2);
    for (const ShownRecord& one : images_and_texts(disk_, {path}))
      EXPECT_EQ(disk_.read_range(path, one.offset, one.bytes).size(), one.bytes);
  });
}

TEST_F(MutationsTest, OfARecipe) {
  const std::string path = scratch_.path("digits.toml");
  write_text(path, read_text(TUTTI_SOURCE_DIR "/examples/digits.toml"));
  read_mutated(path, [&] { resolve_recipe(read_recipe(path)); });
}

}  // namespace
}  // namespace tutti
