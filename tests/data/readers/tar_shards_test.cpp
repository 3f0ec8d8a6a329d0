#include "data/readers/tar_shards.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/text.h"
#include "tests/data/readers/image_samples.h"
#include "tests/runtime/mutation.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kShards = TUTTI_SOURCE_DIR "/tests/golden/images/shard-";

WebDatasetOptions at_path(const std::string& path) {
  WebDatasetOptions options;
  options.path = path;
  return options;
}

std::vector<int64_t> targets_of(const ImageSource& source) {
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < source.size(); ++i) targets.push_back(source.target(i));
  return targets;
}

at::Tensor image_of(const ImageSource& source, int64_t index) {
  std::vector<std::byte> buffer;
  return decode_image(source.read(index, buffer));
}

// make_images.py rolls the same image by one more row for each sample.
TEST(TarShards, SamplesAreThoseThatWebdatasetWrote) {
  const ImageSourcePtr source = open_tar_shards(at_path(kShards + "{000..001}.tar"));
  EXPECT_THAT(targets_of(*source), ElementsAre(0, 2, 2, 1, 2, 3));
  EXPECT_EQ(source->classes(), 4);
  for (int64_t i = 1; i < source->size(); ++i)
    EXPECT_TRUE(at::equal(image_of(*source, i), image_of(*source, 0).roll({i}, {0}))) << i;
  EXPECT_EQ(source->name(4), kShards + "001.tar");
}

TEST(TarShards, PathsAreBracesPatternsAndFolders) {
  const std::string folder = TUTTI_SOURCE_DIR "/tests/golden/images";
  const auto both = ElementsAre(kShards + "000.tar", kShards + "001.tar");
  EXPECT_THAT(shard_paths(kShards + "{000..001}.tar"), both);
  EXPECT_THAT(shard_paths(kShards + "*.tar"), both);
  EXPECT_THAT(shard_paths(folder), both);
  EXPECT_THAT(shard_paths(kShards + "{001,000}.tar"), ElementsAre(kShards + "001.tar", kShards + "000.tar"));
  EXPECT_THAT(shard_paths("a{08..10}{x,y}"), ElementsAre("a08x", "a08y", "a09x", "a09y", "a10x", "a10y"));
  EXPECT_THAT(message_of<UserError>([&] { shard_paths(folder + "/none*"); }), HasSubstr("no such tar file"));
}

TEST(TarShards, ClassesMayHaveNames) {
  WebDatasetOptions options = at_path(kShards + "000.tar");
  options.classes = {"2", "1", "0"};
  EXPECT_THAT(targets_of(*open_tar_shards(options)), ElementsAre(2, 0, 0));
  options.classes = {"a", "b"};
  EXPECT_THAT(message_of<UserError>([&] { open_tar_shards(options); }),
              HasSubstr("class 2 is not in [0, 2)"));
  options.classes.clear();
  options.num_classes = 2;
  EXPECT_THAT(message_of<UserError>([&] { open_tar_shards(options); }), HasSubstr("has a class 2"));
  options = at_path(kShards + "000.tar");
  options.label_key = "none";
  EXPECT_THAT(message_of<UserError>([&] { open_tar_shards(options); }),
              HasSubstr("0/sample1.png has no class beside it"));
}

class TarStream : public testing::Test {
 protected:
  static ImageSourcePtr opened(const std::string& command, bool skip = false) {
    WebDatasetOptions options;
    options.command = command;
    options.num_classes = 4;
    if (skip) options.on_bad_sample = OnBadSample::kSkip;
    return open_tar_stream(options, {.command = command});
  }
  static std::string error_of(const std::string& command) {
    return message_of<UserError>([&] { opened(command); });
  }

  Scratch scratch_;
  const std::string cat_ = "cat " + kShards + "000.tar " + kShards + "001.tar";
};

TEST_F(TarStream, SamplesAreThoseOfTheFiles) {
  const ImageSourcePtr files = open_tar_shards(at_path(kShards + "{000..001}.tar")), stream = opened(cat_);
  ASSERT_EQ(stream->size(), files->size());
  EXPECT_EQ(stream->classes(), 4);
  for (int64_t i = 0; i < 3 * stream->size(); ++i) {
    EXPECT_EQ(stream->target(i), files->target(i % 6)) << i;
    EXPECT_TRUE(at::equal(image_of(*stream, i), image_of(*files, i % 6))) << i;
  }
  EXPECT_EQ(stream->place(3), "1/sample0.png");
}

TEST_F(TarStream, AnEpochMayBeAPart) {
  WebDatasetOptions options;
  options.classes = {"0", "1", "2", "3"};
  const ImageFiles images(open_tar_stream(options, {.command = cat_, .epoch_samples = 4}), options);
  EXPECT_EQ(images.size(), 4);
  EXPECT_EQ(images.order(1, 1, 3, false), 7);
  images.scan();
  const std::vector<int64_t> indices = {4, 5, 6, 7};
  EXPECT_TRUE(at::equal(images.get(indices, {})["target"], at::tensor({2, 3, 0, 2}, at::kLong)));
}

TEST_F(TarStream, ClassesAreNotLookedFor) {
  EXPECT_THAT(message_of<UserError>([&] { open_tar_stream(WebDatasetOptions{}, {.command = cat_}); }),
              HasSubstr("give num_classes, classes or classes_from"));
}

// Sample 1 has its class in JSON, the others in files.
TEST_F(TarStream, SamplesWithoutAClassAreNamedOrLeftOut) {
  std::string bytes = read_text(kShards + "000.tar");
  for (std::size_t at = bytes.find("\"label\""); at != std::string::npos; at = bytes.find("\"label\""))
    bytes[at + 1] = 'L';
  write_text(scratch_.path("s.tar"), bytes);
  const std::string command = "cat " + scratch_.path("s.tar");
  EXPECT_THAT(error_of(command), HasSubstr("cat ...: sample 1: byte "));
  EXPECT_THAT(error_of(command), HasSubstr("0/sample1.png has no class beside it"));
  const ImageSourcePtr rest = opened(command, /*skip=*/true);
  EXPECT_THAT(targets_of(*rest), ElementsAre(0, 2));
  for (int64_t i = 0; i < 10; ++i) rest->target(i);
  EXPECT_THAT(rest->replaced(), HasSubstr("1 sample was left out; the first: cat ...: sample 1: "));
}

TEST_F(TarStream, DamageIsAnErrorWithTheCommandAndItsByte) {
  std::string bytes = read_text(kShards + "000.tar");
  write_text(scratch_.path("cut.tar"), bytes.substr(0, 1700));
  bytes[3] ^= 1;
  write_text(scratch_.path("s.tar"), bytes);
  EXPECT_THAT(error_of("cat " + scratch_.path("s.tar")), HasSubstr("cat ...: byte 0: no header of a file"));
  EXPECT_THAT(error_of("cat " + scratch_.path("cut.tar")), HasSubstr("the file ends here, within "));
  EXPECT_THAT(error_of("false"), HasSubstr("the command failed with exit code 1"));
}

TEST_F(TarStream, AnImageThatCannotBeReadIsReplacedByTheNext) {
  std::string bytes = read_text(kShards + "000.tar");
  bytes[bytes.find("PNG")] = 'X';
  write_text(scratch_.path("s.tar"), bytes);
  WebDatasetOptions options;
  options.command = "cat " + scratch_.path("s.tar");
  options.num_classes = 4;
  const auto data = [&] {
    return ImageFiles(open_tar_stream(options, {.command = options.command, .epoch_samples = 2}), options);
  };
  const std::vector<int64_t> indices = {2, 3};
  EXPECT_THAT(message_of<UserError>([&] { data().get(indices, {}); }),
              HasSubstr("0/sample0.png: sample 3: no image"));
  options.on_bad_sample = OnBadSample::kSkip;
  const ImageFiles skipping = data();
  EXPECT_TRUE(at::equal(skipping.get(indices, {})["target"], at::tensor({2, 2}, at::kLong)));
  EXPECT_THAT(skipping.replaced(), HasSubstr("1 times an image could not be read"));
}

class TarFile : public testing::Test {
 protected:
  std::string with(const std::string& bytes) const {
    write_text(path_, bytes);
    return message_of<UserError>([&] { open_tar_shards(at_path(path_)); });
  }

  Scratch scratch_;
  std::string path_ = scratch_.path() + "/s.tar";
  const std::string good_ = read_text(kShards + "000.tar");
};

// A member, as it stands in a tar file.
std::string member(const std::string& name, const std::string& data) {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(124, 11, formatted("%011o", static_cast<unsigned>(data.size())));
  block[156] = '0';
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  block.replace(148, 7, formatted("%06o", sum) + '\0');
  return block + data + std::string((512 - data.size() % 512) % 512, '\0');
}

TEST_F(TarFile, MembersAreJoinedAsWebdatasetJoinsThem) {
  const std::string png = encoded_sample("rgb_19x37.png");
  const auto targets = [&](const std::string& tar) {
    write_text(path_, tar);
    return targets_of(*open_tar_shards(at_path(path_)));
  };
  EXPECT_THAT(targets(member("v1.0/a.PNG", png) + member("v1.0/a.CLS", " 2\n") + member("v1.0/b.png", png) +
                      member("v1.0/b.cls", "1")),
              ElementsAre(2, 1));
  const std::string json = R"({"label": 0})";
  EXPECT_THAT(targets(member("a.cls", "1") + member("a.json", json) + member("a.png", png)), ElementsAre(1));
  EXPECT_THAT(targets(member("a.json", json) + member("a.cls", "1") + member("a.png", png)), ElementsAre(1));
  EXPECT_THAT(targets(member("a.png", png) + member("a.mask.png", "x") + member("a.cls", "1")),
              ElementsAre(1));
  EXPECT_THAT(with(member("a.png", png) + member("a.cls", "1") + member("b.cls", "1")),
              HasSubstr("b has a class and no image; it holds no .jpg"));
  EXPECT_THAT(with(member("a.jpg", "x") + member("a.png", png) + member("a.cls", "1")),
              HasSubstr("a.png is a second image beside a.jpg"));
}

TEST_F(TarFile, DigestIsOfClasses) {
  const std::string png = encoded_sample("rgb_19x37.png");
  const auto digest = [&](const char* number) {
    write_text(path_, member("a.png", png) + member("a.cls", number));
    return open_tar_shards(at_path(path_))->digest();
  };
  EXPECT_EQ(digest("1"), digest("1"));
  EXPECT_NE(digest("1"), digest("2"));
}

TEST_F(TarFile, DamageIsAnErrorWithItsByte) {
  std::string bytes = good_;
  bytes[3] ^= 1;
  EXPECT_THAT(with(bytes), HasSubstr("s.tar: byte 0: no header of a file in a tar file"));
  const auto cut = good_.substr(0, 1700);
  EXPECT_THAT(with(cut), HasSubstr("the file ends here, within 0/sample0.png, which has 206 bytes: cut off"));
  EXPECT_THAT(with(good_.substr(0, 2048) + "cut"),
              HasSubstr("byte 2051: the file ends here, within a header: cut off"));
  EXPECT_THAT(with(std::string(1024, '\0')), HasSubstr("has no image"));
}

TEST_F(TarFile, ChangedFilesAreReadOrRefused) {
  int refused = 0;
  for (int i = 0; i < mutations(200); ++i) {
    write_text(path_, Mutation(i).of(good_));
    try {
      const ImageSourcePtr source = open_tar_shards(at_path(path_));
      for (int64_t s = 0; s < source->size(); ++s) {
        std::vector<std::byte> buffer;
        if (encoded_size(source->read(s, buffer)).height < 100) image_of(*source, s);
      }
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tutti
