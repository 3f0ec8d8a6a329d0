#include "data/readers/benchmarks/cifar.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/error.h"
#include "tests/io/formats/gzipped.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using Labels = CifarOptions::Labels;

constexpr int64_t kPlane = 32 * 32;

char pixel_of(int image, int64_t channel, int64_t place) {
  return static_cast<char>(image * 31 + channel * 67 + place);
}

// A record as in the files: labels, then the red, the green and the blue plane.
std::string record(int image, const std::string& labels) {
  std::string bytes = labels;
  for (int64_t channel = 0; channel < 3; ++channel)
    for (int64_t place = 0; place < kPlane; ++place) bytes += pixel_of(image, channel, place);
  return bytes;
}

void expect_image(const at::Tensor& image, int number) {
  ASSERT_EQ(image.sizes(), (at::IntArrayRef{32, 32, 3}));
  ASSERT_EQ(image.scalar_type(), at::kByte);
  for (const int64_t place : {int64_t{0}, int64_t{37}, kPlane - 1})
    for (int64_t channel = 0; channel < 3; ++channel)
      EXPECT_EQ(image[place / 32][place % 32][channel].item<uint8_t>(),
                static_cast<uint8_t>(pixel_of(number, channel, place)));
}

class CifarTest : public testing::Test {
 protected:
  std::string written(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    write_text(folder_.path(name), bytes);
    return folder_.path(name);
  }
  static std::vector<int64_t> labels_of(const Dataset& data) {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < data.size(); ++i)
      labels.push_back(data.get({&i, 1}, {})["target"].item<int64_t>());
    return labels;
  }
  std::string why_not(const std::string& bytes, Labels labels = Labels::kTen) const {
    const std::string path = written("bad.bin", bytes);
    return message_of<UserError>([&] { open_cifar({path, labels}); });
  }

  Scratch folder_;
};

TEST_F(CifarTest, ARecordIsALabelAndThreePlanes) {
  const auto data = open_cifar({written("two.bin", record(0, "\x07") + record(1, "\x03"))});
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(data->spec().describe("input"), "uint8 [32, 32, 3]");
  EXPECT_EQ(data->spec().describe("target"), "int64 number");
  EXPECT_EQ(data->spec().classes, 10);
  const Batch batch = data->get(std::vector<int64_t>{1, 0}, {});
  expect_image(batch["input"][0], 1);
  expect_image(batch["input"][1], 0);
  EXPECT_TRUE(at::equal(batch["target"], at::tensor({3, 7})));
  EXPECT_EQ(data->get({}, {})["input"].sizes(), (at::IntArrayRef{0, 32, 32, 3}));
}

TEST_F(CifarTest, TrainingDataAreTheFiveFilesInTheirOrder) {
  for (int i = 1; i <= 5; ++i)
    written("cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin",
            record(2 * i, std::string(1, static_cast<char>(i))) +
                record(2 * i + 1, std::string(1, static_cast<char>(i + 1))));
  const std::string test = written("cifar-10-batches-bin/test_batch.bin", record(99, "\x09"));
  for (const std::string& folder : {folder_.path(), folder_.path("cifar-10-batches-bin")}) {
    const auto data = open_cifar({folder});
    EXPECT_EQ(labels_of(*data), (std::vector<int64_t>{1, 2, 2, 3, 3, 4, 4, 5, 5, 6}));
    expect_image(data->get(std::vector<int64_t>{6}, {})["input"][0], 8);
    EXPECT_EQ(labels_of(*open_cifar({folder, Labels::kTen, /*test=*/true})), (std::vector<int64_t>{9}));
  }
  std::filesystem::remove(folder_.path("cifar-10-batches-bin/data_batch_4.bin"));
  EXPECT_THAT(message_of<UserError>([&] { open_cifar({folder_.path()}); }), HasSubstr("data_batch_4.bin"));
}

TEST_F(CifarTest, CifarHundredHasCoarseAndFineLabels) {
  written("cifar-100-binary/train.bin", record(0, "\x13\x63") + record(1, std::string("\0\x01", 2)));
  written("cifar-100-binary/test.bin", record(2, "\x02\x05"));
  const auto fine = open_cifar({folder_.path(), Labels::kFine});
  EXPECT_EQ(fine->spec().classes, 100);
  EXPECT_EQ(labels_of(*fine), (std::vector<int64_t>{99, 1}));
  const auto coarse = open_cifar({folder_.path(), Labels::kCoarse});
  EXPECT_EQ(coarse->spec().classes, 20);
  EXPECT_EQ(labels_of(*coarse), (std::vector<int64_t>{19, 0}));
  expect_image(coarse->get(std::vector<int64_t>{1}, {})["input"][0], 1);
  EXPECT_EQ(labels_of(*open_cifar({folder_.path(), Labels::kFine, true})), (std::vector<int64_t>{5}));
}

TEST_F(CifarTest, MayBeGzipped) {
  written("test_batch.bin.gz", gzipped(record(5, "\x04")));
  const auto data = open_cifar({folder_.path(), Labels::kTen, /*test=*/true});
  expect_image(data->get(std::vector<int64_t>{0}, {})["input"][0], 5);
}

TEST_F(CifarTest, DigestDistinguishesData) {
  const auto digest = [&](const std::string& bytes) {
    return open_cifar({written("a.bin", bytes)})->digest();
  };
  EXPECT_EQ(digest(record(0, "\x01")), digest(record(0, "\x01")));
  EXPECT_NE(digest(record(0, "\x01")), digest(record(0, "\x02")));
  EXPECT_NE(digest(record(0, "\x01")), digest(record(1, "\x01")));
}

TEST_F(CifarTest, AFileThatIsCutIsNamedWithTheByte) {
  const std::string path = folder_.path("bad.bin");
  EXPECT_EQ(why_not((record(0, "\x01") + record(1, "\x01")).substr(0, 5000)),
            path + ": has 5000 bytes; expected records of 3073: the one that begins at byte 3073 is cut");
  EXPECT_THAT(why_not(record(0, "\x01"), Labels::kFine), HasSubstr("expected records of 3074"));
  EXPECT_THAT(why_not(""), HasSubstr("has 0 bytes"));
}

TEST_F(CifarTest, ALabelThatThereIsNotIsNamedWithTheByte) {
  const std::string path = folder_.path("bad.bin");
  EXPECT_EQ(why_not(record(0, "\x01") + record(1, "\x0a")), path + ": byte 3073: label 10 is not in [0, 10)");
  EXPECT_EQ(why_not(record(0, "\x13\x64"), Labels::kFine), path + ": byte 1: label 100 is not in [0, 100)");
  EXPECT_EQ(why_not(record(0, "\x14\x01"), Labels::kCoarse), path + ": byte 0: label 20 is not in [0, 20)");
}

}  // namespace
}  // namespace tutti
