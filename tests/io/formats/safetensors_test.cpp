#include "io/formats/safetensors.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A file by hand: the header's length, the header, the data.
std::string file_of(const std::string& header, const std::string& data) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

Safetensors read_safetensors(const std::string& path) {
  return {read_weights(path), read_safetensors_header(path).metadata};
}

class SafetensorsTest : public testing::Test {
 protected:
  std::string error_of(const std::string& bytes) {
    write_text(path_, bytes);
    return message_of<UserError>([&] { read_safetensors_header(path_); });
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("a.safetensors");
  PosixDisk disk_;
};

TEST_F(SafetensorsTest, ReadsAFileByHand) {
  const float values[] = {1, 2.5, -3};
  write_text(
      path_,
      file_of(R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[3,1],"data_offsets":[0,12]}})",
              std::string(reinterpret_cast<const char*>(values), 12)));
  const Safetensors content = read_safetensors(path_);
  EXPECT_EQ(content.metadata.at("format"), "pt");
  EXPECT_TRUE(at::equal(content.tensors.at("w"), at::tensor({1.0f, 2.5f, -3.0f}).reshape({3, 1})));
}

// Without looking through all names for each, which would take minutes.
TEST_F(SafetensorsTest, ManyTensorsAreReadInTime) {
  constexpr int kTensors = 300'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i)
    header += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) +
              R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  write_text(path_, file_of(header + "}", ""));
  EXPECT_EQ(read_safetensors_header(path_).tensors.size(), std::size_t{kTensors});
}

TEST_F(SafetensorsTest, WritesTheFormat) {
  write_safetensors(disk_, path_, {{{"w", at::tensor({1.0f})}}, {}});
  const std::string bytes = read_text(path_),
                    header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_EQ(static_cast<unsigned char>(bytes[0]) % 8, 0);
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.substr(bytes.size() - 4), std::string("\0\0\x80\x3f", 4));
}

TEST_F(SafetensorsTest, EveryDtypeAndShapeComesBack) {
  Safetensors content;
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                           at::kChar, at::kByte, at::kUInt16, at::kUInt32, at::kUInt64, at::kBool}) {
    content.tensors[c10::toString(dtype)] = at::arange(2, at::kLong).to(dtype);
  }
  content.tensors["scalar"] = at::scalar_tensor(3.0);
  content.tensors["empty"] = at::empty({0, 4});
  content.tensors["transposed"] = at::arange(6, at::kFloat).reshape({2, 3}).t();
  content.metadata = {{"epoch", "3"}};
  write_safetensors(disk_, path_, content);
  const Safetensors read = read_safetensors(path_);
  EXPECT_EQ(read.metadata, content.metadata);
  ASSERT_EQ(read.tensors.size(), content.tensors.size());
  for (const auto& [name, tensor] : content.tensors) {
    EXPECT_EQ(read.tensors.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(read.tensors.at(name), tensor)) << name;
  }
}

TEST_F(SafetensorsTest, BadFilesAreNamedWithTheOffset) {
  const auto entry = [](const std::string& fields) { return R"({"w":{)" + fields + "}}"; };
  const std::string good = entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,12])"), data(12, '\0');
  EXPECT_THAT(error_of("abc"), AllOf(HasSubstr(path_), HasSubstr("byte 3:")));
  EXPECT_THAT(error_of("this is plain text"), HasSubstr("not a safetensors file"));
  EXPECT_THAT(error_of(file_of(good, data).substr(0, 30)), HasSubstr("truncated"));
  EXPECT_THAT(error_of(file_of(good, data.substr(1))),
              AllOf(HasSubstr("'w'"), HasSubstr("outside the file's 11 bytes")));
  EXPECT_THAT(error_of(file_of(R"({"w":)", data)), HasSubstr("not JSON"));
  EXPECT_THAT(error_of(file_of("[1]", data)), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(file_of(entry(R"("dtype":"F8","shape":[12],"data_offsets":[0,12])"), data)),
              HasSubstr("F8"));
  EXPECT_THAT(error_of(file_of(entry(R"("dtype":"F32","shape":[3])"), data)), HasSubstr("data_offsets"));
  EXPECT_THAT(error_of(file_of(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,12])"), data)),
              HasSubstr("shape"));
  EXPECT_THAT(error_of(file_of(entry(R"("dtype":"F32","shape":[-3],"data_offsets":[0,12])"), data)),
              HasSubstr("shape"));
  EXPECT_THAT(error_of(file_of(entry(R"("dtype":"F32","shape":[3],"data_offsets":[12,0])"), data)),
              HasSubstr("outside"));
  EXPECT_THAT(error_of(file_of(R"({"w":1,"w":2})", data)), HasSubstr("named twice"));
}

// As the format's own reader has it.
TEST_F(SafetensorsTest, BytesBelongToOneTensorEach) {
  const auto two = [](const std::string& first, const std::string& second) {
    const auto entry = [](const std::string& ends) {
      return R"({"dtype":"F32","shape":[2],"data_offsets":)" + ends + "}";
    };
    return file_of(R"({"v":)" + entry(first) + R"(,"w":)" + entry(second) + "}", std::string(20, '\0'));
  };
  EXPECT_THAT(error_of(two("[4,12]", "[0,8]")), HasSubstr("tensor 'v': it overlaps another"));
  EXPECT_THAT(error_of(two("[0,8]", "[12,20]")), HasSubstr("tensor 'w': bytes before it are no tensor's"));
  EXPECT_THAT(error_of(two("[0,8]", "[8,16]")), HasSubstr("bytes behind the last tensor"));
}

TEST_F(SafetensorsTest, AHeaderThatIsNestedTooDeeplyIsRefused) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(error_of(file_of(R"({"w":)" + deep + "}", "")),
              AllOf(HasSubstr(path_), HasSubstr("nested too deeply")));
}

TEST_F(SafetensorsTest, SizesThatOverflowAreRefused) {
  EXPECT_THAT(
      error_of(file_of(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", "")),
      HasSubstr("shape"));
  EXPECT_THAT(
      error_of(file_of(
          R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615]}})",
          "abcd")),
      HasSubstr("outside"));
}

TEST_F(SafetensorsTest, MissingFileIsNamed) {
  EXPECT_THAT(message_of<UserError>([] { read_safetensors_header("/nowhere/a.safetensors"); }),
              HasSubstr("/nowhere/a.safetensors"));
}

}  // namespace
}  // namespace tutti
