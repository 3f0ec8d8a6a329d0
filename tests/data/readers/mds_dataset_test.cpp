#include "data/readers/mds_dataset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <set>

#include "data/arrays/hdf5_dataset.h"
#include "tests/data/readers/image_samples.h"
#include "tests/runtime/mutation.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

// By the writer of now in tests/clients_mds.py.
std::string golden_folder() {
  const char* other = std::getenv("TUTTI_GOLDEN_DIR");
  return std::string(other ? other : TUTTI_SOURCE_DIR "/tests/golden") + "/mds/";
}
const std::string kGolden = golden_folder();

Setting text(const std::string& value) { return Setting(value, "columns", {}); }

MdsOptions mds_at(const std::string& path, const Setting::Table& columns = {}) {
  MdsOptions options;
  options.path = path;
  if (!columns.empty()) options.columns = Setting(columns, "columns", {});
  return options;
}

Batch all_samples(const Dataset& dataset) {
  std::vector<int64_t> indices(static_cast<std::size_t>(dataset.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return dataset.get(indices, {});
}

std::string mds_error(const MdsOptions& options) {
  return message_of<UserError>([&] { all_samples(*open_mds(options, kIgnoredTarget)); });
}

// A copy of a golden dataset, whose compressed shards may be uncompressed beside them.
class MdsFolder : public testing::Test {
 protected:
  std::string copy(const std::string& name) const {
    fs::copy(kGolden + name, scratch_.path(name), fs::copy_options::recursive);
    return scratch_.path(name);
  }

  Scratch scratch_;
};

// make_mds.py has had Streaming decode every column into values.h5, whose arrays have the dtypes of batches.
TEST(MdsDataset, EveryEncodingIsWhatStreamingReads) {
  const Hdf5Dataset expected({.path = kGolden + "values.h5"});
  const Batch batch = all_samples(expected);
  const SampleSpec spec = expected.spec();
  EXPECT_EQ(spec.shapes.size(), 35U);
  for (const auto& [name, shape] : spec.shapes) {
    const auto dataset = open_mds(mds_at(kGolden + "all", {{"x", text(name)}}), kIgnoredTarget);
    const at::Tensor found = all_samples(*dataset)["x"];
    const bool is_scalar_byte = name == "uint8";  // no image
    const at::Tensor wanted = batch[name].to(is_scalar_byte ? at::kLong : batch[name].scalar_type());
    EXPECT_EQ(found.scalar_type(), wanted.scalar_type()) << name;
    EXPECT_TRUE(at::equal(found, wanted)) << name << '\n' << found << wanted;
    EXPECT_EQ(dataset->spec().shapes["x"], shape) << name;
  }
}

TEST(MdsDataset, PickledColumnsAreRefused) {
  EXPECT_THAT(mds_error(mds_at(kGolden + "all", {{"x", text("pickled")}})),
              HasSubstr("column 'pickled' is pickled (pkl)"));
  EXPECT_THAT(mds_error(mds_at(kGolden + "all")), HasSubstr("column 'label' is text"));
  EXPECT_THAT(mds_error(mds_at(kGolden + "all", {{"x", text("texts")}})),
              HasSubstr("there is no column 'texts'; it has array, array_float16"));
  EXPECT_THAT(mds_error(mds_at(kGolden + "all", {{"x", text("label")}})), HasSubstr("only a target may be"));
}

TEST_F(MdsFolder, TextsAreClassesSortedByName) {
  const MdsOptions options = mds_at(copy("zstd"), {{"input", text("png")}, {"target", text("label")}});
  const DatasetPtr images = open_mds(options, kIgnoredTarget);
  EXPECT_NE(dynamic_cast<const ImageFiles*>(images.get()), nullptr);
  EXPECT_THAT(mds_classes(options), ElementsAre("ant", "cat", "dog"));
  EXPECT_TRUE(at::equal(all_samples(*images)["target"], at::tensor({2, 1, 0}, at::kLong)));
  EXPECT_EQ(images->spec().classes, 3);
  MdsOptions named = options;
  named.classes = {"dog", "cat"};
  EXPECT_THAT(mds_error(named), HasSubstr("'ant' is no class"));
  named.columns = Setting(Setting::Table{{"input", text("int")}, {"target", text("label")}}, "columns", {});
  EXPECT_THAT(mds_error(named), HasSubstr("'ant' is no class"));
  named.classes = {"dog", "ant", "cat"};
  const Batch batch = all_samples(*open_mds(named, kIgnoredTarget));
  EXPECT_TRUE(at::equal(batch["target"], at::tensor({0, 2, 1}, at::kLong)));
}

TEST_F(MdsFolder, CompressedShardsAreUncompressedOnce) {
  for (const std::string name : {"zstd", "gz"}) {
    const std::string path = copy(name);
    const Setting::Table columns = {{"input", text(name == "gz" ? "tokens" : "png")},
                                    {"n", text(name == "gz" ? "int32" : "int")}};
    const Batch first = all_samples(*open_mds(mds_at(path, columns), kIgnoredTarget));
    const MdsIndex index = read_mds_index(path + "/index.json");
    for (const MdsShard& shard : index.shards) {
      EXPECT_EQ(fs::file_size(path + '/' + shard.raw.name), shard.raw.bytes);
      EXPECT_TRUE(fs::exists(path + '/' + shard.compressed->name));
      fs::resize_file(path + '/' + shard.compressed->name, 1);  // not read anymore
    }
    const Batch again = all_samples(*open_mds(mds_at(path, columns), kIgnoredTarget));
    EXPECT_TRUE(at::equal(first["input"], again["input"]));
    const std::string column = name == "gz" ? "int32" : "int";
    const Batch whole =
        all_samples(*open_mds(mds_at(kGolden + "all", {{"n", text(column)}}), kIgnoredTarget));
    EXPECT_TRUE(at::equal(first["n"], whole["n"]));
  }
}

TEST(MdsDataset, TokensOfBytesHaveTheGivenDtype) {
  MdsOptions options = mds_at(kGolden + "all", {{"input", text("tokens")}, {"target", text("tokens")}});
  const DatasetPtr tokens = open_mds(options, kIgnoredTarget);
  EXPECT_EQ(tokens->spec().classes, 8);
  EXPECT_EQ(tokens->labels().largest, -1) << "tokens are no classes";
  EXPECT_TRUE(at::equal(all_samples(*tokens)["target"][2], at::arange(2, 8)));
  options.num_classes = 7;
  EXPECT_THAT(mds_error(options), HasSubstr("column 'tokens' has 7, which is not in [0, 7)"));
  options.num_classes = 0;
  options.dtype = MdsNumber::kUint32;
  EXPECT_EQ(open_mds(options, kIgnoredTarget)->spec().shapes["input"], Shape{12});
  options.columns = Setting(Setting::Table{{"x", text("image_bytes")}}, "columns", {});
  EXPECT_EQ(open_mds(options, kIgnoredTarget)->spec().shapes["x"], (Shape{5, 9, 3}));
}

// 8 tokens, and 7 classes beside them.
TEST(MdsDataset, IntegersBesideAClassAreNoTokens) {
  MdsOptions options = mds_at(kGolden + "all", {{"input", text("tokens")}, {"target", text("int32")}});
  EXPECT_EQ(open_mds(options, kIgnoredTarget)->spec().classes, 7);
  EXPECT_EQ(open_mds(options, 6)->spec().classes, 4) << "6 does not count";
  EXPECT_EQ(open_mds(options, kIgnoredTarget)->labels().smallest, 0);
  EXPECT_EQ(open_mds(options, 0)->labels().smallest, 3) << "0 does not count";
  options.num_classes = 7;
  EXPECT_EQ(all_samples(*open_mds(options, kIgnoredTarget))["input"].max().item<int64_t>(), 7);
}

TEST(MdsDataset, IntegersHaveTheirSigns) {
  const auto read = [](const char* encoding) {
    const std::string bits = "\xfe\xff\xff\xff\xff\xff\xff\xff";
    const MdsEncoding parsed = MdsEncoding::parse(encoding);
    const std::string value = bits.substr(0, static_cast<std::size_t>(bytes_of(*parsed.type)));
    int64_t number = 0;
    MdsArrayColumn(parsed, bytes_of(value), {}).write(bytes_of(value), reinterpret_cast<std::byte*>(&number));
    return number;
  };
  EXPECT_THAT((std::vector{read("uint8"), read("uint16"), read("uint32")}),
              ElementsAre(254, 65534, 4294967294));
  for (const char* encoding : {"int8", "int16", "int32", "int64"}) EXPECT_EQ(read(encoding), -2) << encoding;
}

TEST(MdsDataset, PixelsOfPillowAreCutAsFilesAre) {
  const MdsSamples samples({kGolden + "all"}, 10);
  const MdsEncoding encoding = MdsEncoding::parse("pil");
  const auto sample = samples.sample(1);
  const MdsBytes value = sample.value(samples.column("pil"));
  const auto cut = [](const ImageSize&) { return NeededPart{{1, 2, {3, 4}}, {3, 4}}; };
  EXPECT_TRUE(at::equal(mds_image(encoding, value, cut, {.may_shrink = true}),
                        mds_image(encoding, value).narrow(0, 1, 3).narrow(1, 2, 4)));
  EXPECT_EQ(mds_image_size(encoding, value), (ImageSize{5, 9}));
}

TEST(MdsDataset, ValuesOfAnotherShapeOrKindAreRefused) {
  const auto refused = [](const char* encoding, const std::string& first, const std::string& other) {
    const MdsArrayColumn column(MdsEncoding::parse(encoding), bytes_of(first), {});
    std::vector<std::byte> row(column.row_bytes());
    column.write(bytes_of(first), row.data());
    return message_of<UserError>([&] { column.write(bytes_of(other), row.data()); });
  };
  EXPECT_EQ(refused("bytes", std::string(16, 'x'), std::string(24, 'x')), "is [3], and [2] in sample 0");
  EXPECT_THAT(refused("bytes", std::string(16, 'x'), std::string(17, 'x')), HasSubstr("no whole numbers"));
  EXPECT_EQ(refused("json", "[1, 2]", "[1, 2.5]"), "is no integer, as it is in sample 0");
  EXPECT_EQ(refused("json", "[1.5, 2]", "[[1], [2]]"), "is [2, 1], and [2] in sample 0");
  EXPECT_EQ(refused("json", "1", "[1, [2]]"), "its lists of numbers differ in depth");
  EXPECT_EQ(refused("str_int", "12", "12a"), "is no integer of 64 bits: '12a'");
  EXPECT_EQ(refused("uint64", std::string(8, '\1'), std::string(8, '\xff')), "has an integer beyond int64");
  EXPECT_THAT(refused("ndarray:uint8:2,3", std::string(6, 'x'), "x"), HasSubstr("is truncated"));
  EXPECT_THAT(refused("ndarray:uint8:2,3", std::string(6, 'x'), std::string(7, 'x')),
              HasSubstr("is damaged: an array of 6 bytes in 7"));
}

TEST(MdsDataset, OrderKeepsShardsTogether) {
  for (const char* target : {"int32", "float32"}) {  // of ImageFiles, and of MdsDataset
    MdsOptions options = mds_at(kGolden + "all", {{"input", text("png")}, {"target", text(target)}});
    options.shuffle_block = 1;
    const DatasetPtr data = open_mds(options, kIgnoredTarget);
    std::set<int64_t> firsts;
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      const int64_t first = data->order(3, epoch, 0, true), last = data->order(3, epoch, 2, true);
      EXPECT_TRUE(first == 2 || last == 2) << "samples 0 and 1 are one shard";
      EXPECT_EQ(first + data->order(3, epoch, 1, true) + last, 3);
      EXPECT_EQ(data->order(3, epoch, 1, false), 1);
      firsts.insert(first);
    }
    EXPECT_EQ(firsts.size(), 3U);
  }
}

TEST_F(MdsFolder, OfDamagedShardsIsAnErrorWithTheSample) {
  const std::string path = copy("all"), shard = path + "/shard.00001.mds";
  const std::string good = read_text(shard);
  const MdsOptions images = mds_at(path, {{"input", text("png")}, {"target", text("int32")}});
  write_text(shard, good.substr(0, good.size() - 1));
  EXPECT_THAT(mds_error(images), HasSubstr("shard.00001.mds: "));
  EXPECT_THAT(mds_error(images), HasSubstr("bytes, and by index.json"));
  std::string bytes = good;
  bytes[0] ^= 1;
  write_text(shard, bytes);
  EXPECT_THAT(mds_error(images), HasSubstr("has 0 samples, and by index.json 1"));
  bytes = good;
  while (const std::size_t at = bytes.find("IDAT") + 1) bytes[at] = 'X';
  write_text(shard, bytes);
  MdsOptions numbered = images;
  numbered.num_classes = 100;
  EXPECT_THAT(mds_error(numbered), HasSubstr("shard.00001.mds: sample 0 of the shard: sample 2: "));
  numbered.on_bad_sample = OnBadSample::kSkip;
  const DatasetPtr skipping = open_mds(numbered, kIgnoredTarget);
  EXPECT_TRUE(at::equal(all_samples(*skipping)["target"], at::tensor({0, 3, 0}, at::kLong)));
  EXPECT_THAT(skipping->replaced(), HasSubstr("1 times an image could not be read"));
  numbered.columns->table().emplace_back("more", text("int"));
  const DatasetPtr more = open_mds(numbered, kIgnoredTarget);
  EXPECT_TRUE(at::equal(all_samples(*more)["target"], at::tensor({0, 3, 0}, at::kLong)));
  EXPECT_THAT(more->replaced(), HasSubstr("1 times a sample could not be read"));
  EXPECT_THAT(message_of<UserError>([&] { open_mds(images, kIgnoredTarget)->scan(); }), HasSubstr("xxh64"));
}

TEST_F(MdsFolder, IsScannedByAllHashes) {
  for (const char* name : {"all", "zstd", "gz"}) {
    const std::string column = name == std::string("gz") ? "int32" : "int", path = copy(name);
    open_mds(mds_at(path, {{"x", text(column)}}), kIgnoredTarget)->scan();
  }
  const std::string shard = scratch_.path("all") + "/shard.00000.mds";
  std::string bytes = read_text(shard);
  bytes[bytes.size() - 1] ^= 1;  // of a column that is not read
  write_text(shard, bytes);
  for (const Setting::Table& columns :
       {Setting::Table{{"x", text("int")}}, {{"input", text("png")}, {"target", text("int32")}}})
    EXPECT_THAT(message_of<UserError>(
                    [&] { open_mds(mds_at(scratch_.path("all"), columns), kIgnoredTarget)->scan(); }),
                HasSubstr("shard.00000.mds: is damaged: its xxh64"));
}

TEST_F(MdsFolder, FetchedCompressedIsKeptUncompressed) {
  MdsOptions options = mds_at(scratch_.path("local"), {{"x", text("int")}});
  options.remote = kGolden + "zstd";
  options.fetch = "cp {source} {target}";
  all_samples(*open_mds(options, kIgnoredTarget));
  int shards = 0;
  for (const auto& entry : fs::directory_iterator(options.path)) {
    EXPECT_NE(entry.path().extension(), ".zstd");
    shards += entry.path().extension() == ".mds";
  }
  EXPECT_GT(shards, 1);
}

TEST_F(MdsFolder, OfContradictingShardsIsRefused) {
  const std::string path = copy("all"), index = path + "/index.json", good = read_text(index);
  const auto with = [&](const std::string& last, const std::string& other) {
    std::string bad = good;
    bad.replace(bad.rfind(last), last.size(), other);
    write_text(index, bad);
    return mds_error(mds_at(path, {{"x", text("int")}}));
  };
  EXPECT_THAT(with("shard.00001.mds", "shard.00000.mds"),
              HasSubstr("shard 1: has the file of another shard"));
  EXPECT_THAT(with("\"label\"", "\"other\""), HasSubstr("shard 1: has other columns"));
  // Four times as much is 0 in 64 bits.
  EXPECT_THAT(with("\"samples\": 1", "\"samples\": 4611686018427387904"),
              HasSubstr("has no count of samples that"));
  write_text(index, good);
  const std::string shard = path + "/shard.00000.mds";
  std::string bytes = read_text(shard);
  bytes.replace(4, 4, std::string(4, '\0'));  // where sample 0 begins
  write_text(shard, bytes);
  EXPECT_THAT(mds_error(mds_at(path, {{"x", text("int")}})), HasSubstr("its samples do not fill it"));
}

TEST_F(MdsFolder, ChangedAtRandomIsReadOrRefused) {
  const std::string path = copy("all"), zstd = copy("zstd");
  const auto read = [&](const std::string& folder, const std::string& column) {
    try {
      const DatasetPtr data = open_mds(mds_at(folder, {{"x", text(column)}}), kIgnoredTarget);
      if (data->size() > 1000 || data->spec().shapes["x"].size() > 8) return 0;
      for (int64_t i = 0; i < data->size(); ++i) data->get(std::span(&i, 1), {});
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(scratch_.path()));
      return 1;
    }
    return 0;
  };
  const std::vector<std::string> columns = {"list_png", "array",     "pil_inks",
                                            "numbers",  "str_float", "tokens"};
  int refused = 0;
  for (const std::string& name : {std::string("/index.json"), std::string("/shard.00000.mds")}) {
    const std::string good = read_text(path + name);
    for (int i = 0; i < mutations(150); ++i) {
      std::string bad = Mutation(i).of(good);
      if (name != "/index.json") bad.resize(good.size());  // the size is looked at first
      write_text(path + name, bad);
      refused += read(path, columns[static_cast<std::size_t>(i) % columns.size()]);
    }
    write_text(path + name, good);
  }
  const std::string file = zstd + "/shard.00000.mds.zstd", good = read_text(file);
  for (int i = 0; i < mutations(100); ++i) {
    std::string bad = Mutation(i).of(good);
    bad.resize(good.size());
    write_text(file, bad);
    fs::remove(zstd + "/shard.00000.mds");
    refused += read(zstd, "png");
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace tutti
