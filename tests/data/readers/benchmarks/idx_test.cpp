#include "data/readers/benchmarks/idx.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/error.h"
#include "tests/data/readers/idx_text.h"
#include "tests/io/formats/gzipped.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string counted(int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(i);
  return text;
}

class IdxTest : public testing::Test {
 protected:
  IdxTest() {
    write_text(images_, idx_text({3, 2, 4}, counted(24)));
    write_text(labels_, idx_text({3}, "\x02\x07\x01"));
  }
  DatasetPtr opened(int64_t num_classes = 0) const { return open_idx({images_, labels_, num_classes}); }
  std::string why_not() const {
    return message_of<UserError>([this] { opened(); });
  }
  std::string with_images(const std::string& text) const {
    write_text(images_, text);
    return why_not();
  }
  std::string with_labels(const std::string& text) const {
    write_text(labels_, text);
    return why_not();
  }

  Scratch folder_;
  std::string images_ = folder_.path("images"), labels_ = folder_.path("labels");
};

TEST_F(IdxTest, ImagesHaveOneChannel) {
  const auto data = opened();
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(data->spec().describe("input"), "uint8 [2, 4, 1]");
  EXPECT_EQ(data->spec().classes, 8) << "the largest label, and 0";
  EXPECT_EQ(opened(10)->spec().classes, 10);
  EXPECT_EQ(data->labels().smallest, 1) << "the smallest label";
  const Batch batch = data->get(std::vector<int64_t>{2, 0}, {});
  EXPECT_TRUE(at::equal(batch["input"][0].flatten(), at::arange(16, 24).to(at::kByte)));
  EXPECT_TRUE(at::equal(batch["input"][1].flatten(), at::arange(8).to(at::kByte)));
  EXPECT_TRUE(at::equal(batch["target"], at::tensor({1, 2})));
}

TEST_F(IdxTest, ImagesMayHaveChannels) {
  write_text(images_, idx_text({3, 2, 1, 3}, counted(18)));
  EXPECT_EQ(opened()->spec().describe("input"), "uint8 [2, 1, 3]");
  EXPECT_TRUE(at::equal(opened()->get(std::vector<int64_t>{1}, {})["input"].flatten(),
                        at::arange(6, 12).to(at::kByte)));
}

TEST_F(IdxTest, MayBeGzipped) {
  const auto plain = opened()->get(std::vector<int64_t>{0, 1, 2}, {});
  const uint64_t digest = opened()->digest();
  write_text(images_, gzipped(read_text(images_)));
  write_text(labels_, gzipped(read_text(labels_)));
  EXPECT_TRUE(at::equal(opened()->get(std::vector<int64_t>{0, 1, 2}, {})["input"], plain["input"]));
  EXPECT_EQ(opened()->digest(), digest);
}

TEST_F(IdxTest, TruncatedFilesAreNamedWithTheirEnd) {
  const std::string images = read_text(images_), labels = read_text(labels_);
  EXPECT_EQ(
      with_images(images.substr(0, 30)),
      images_ + ": ends at byte 30, in its data [3, 2, 4], which by its header end at byte 40: truncated");
  EXPECT_EQ(with_images(images.substr(0, 10)), images_ + ": ends at byte 10, in its header: truncated");
  EXPECT_EQ(with_images(""), images_ + ": ends at byte 0, in the magic number: truncated");
  write_text(images_, images);
  EXPECT_EQ(with_labels(labels.substr(0, 9)),
            labels_ + ": ends at byte 9, in its data [3], which by its header end at byte 11: truncated");
}

TEST_F(IdxTest, WrongHeadersAreNamedWithTheByte) {
  EXPECT_EQ(with_images("\x89PNG"), images_ + ": byte 0: it is no IDX file, which begins with two zeros");
  EXPECT_EQ(with_images(idx_text({3, 2, 4}, counted(96), 0x0d)),
            images_ + ": byte 2: its numbers are of type 13; only 8, unsigned bytes, are read");
  EXPECT_EQ(with_images(idx_text({3, 2, 4}, counted(25))),
            images_ + ": byte 40: there are 1 bytes behind its data [3, 2, 4]");
  EXPECT_THAT(with_images(idx_text({3, 0, 4}, "")), StartsWith(images_ + ": byte 8: it holds nothing"));
  EXPECT_THAT(with_images(idx_text({3, 8}, counted(24))),
              StartsWith(images_ + ": byte 3: it has 2 dimensions"));
  EXPECT_THAT(with_images(idx_text(std::vector<int>(9, 0x7fffffff), "")),
              StartsWith(images_ + ": byte 4: it is too large for a file"));
}

TEST_F(IdxTest, OfAGzippedFileNoMoreIsUncompressedThanItsHeaderPromises) {
  const auto behind = [&](std::size_t bytes) {
    return with_images(gzipped(idx_text({3, 2, 4}, counted(24)) + std::string(bytes, 'x')));
  };
  EXPECT_EQ(behind(1), images_ + ": byte 40: there are 1 bytes behind its data [3, 2, 4]");
  EXPECT_EQ(behind(90'000'000),
            images_ + ": byte 40: there are more than 65496 bytes behind its data [3, 2, 4]");
  EXPECT_EQ(with_images(gzipped(std::string(90'000'000, 'x'))),
            images_ + ": byte 0: it is no IDX file, which begins with two zeros");
  EXPECT_THAT(with_images(gzipped(idx_text(std::vector<int>(9, 0x7fffffff), std::string(90'000'000, 'x')))),
              StartsWith(images_ + ": byte 4: it is too large for a file"));
}

TEST_F(IdxTest, LabelsGoWithTheImages) {
  EXPECT_EQ(with_labels(idx_text({2}, "\x01\x02")), labels_ + ": byte 4: it has 2 labels, for 3 images");
  EXPECT_THAT(with_labels(idx_text({3, 1}, "\x01\x02\x03")),
              StartsWith(labels_ + ": byte 3: it has 2 dimensions; expected labels [samples]"));
  write_text(labels_, idx_text({3}, "\x02\x07\x01"));
  EXPECT_EQ(message_of<UserError>([this] { opened(7); }), labels_ + ": byte 9: label 7 is not in [0, 7)");
}

TEST_F(IdxTest, MnistsFilesAreFoundByTheirNames) {
  const auto place = [&](const std::string& images, const std::string& labels, bool gzip) {
    const std::string suffix = gzip ? ".gz" : "";
    for (const auto& [from, to] : {std::pair(images_, images), std::pair(labels_, labels)}) {
      std::filesystem::create_directories(std::filesystem::path(folder_.path(to)).parent_path());
      write_text(folder_.path(to) + suffix, gzip ? gzipped(read_text(from)) : read_text(from));
    }
  };
  place("a/train-images-idx3-ubyte", "a/train-labels-idx1-ubyte", false);
  place("a/t10k-images-idx3-ubyte", "a/t10k-labels-idx1-ubyte", true);
  place("b/MNIST/raw/train-images.idx3-ubyte", "b/MNIST/raw/train-labels.idx1-ubyte", false);
  for (const auto& [folder, test] : {std::pair("a", false), std::pair("a", true), std::pair("b", false)})
    EXPECT_EQ(open_idx(mnist_files(folder_.path(folder), test))->digest(), opened()->digest()) << folder;
  EXPECT_EQ(message_of<UserError>([&] { mnist_files(folder_.path("b"), true); }),
            folder_.path("b") + ": there is no t10k-images-idx3-ubyte in it, plain or .gz");
}

}  // namespace
}  // namespace tutti
