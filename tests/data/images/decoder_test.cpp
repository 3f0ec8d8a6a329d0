#include "data/images/decoder.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "runtime/error.h"
#include "tensors/param_view.h"
#include "tests/data/readers/image_samples.h"
#include "tests/runtime/mutation.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

at::Tensor decoded(const std::string& file) { return decode_image(bytes_of(file)); }

at::Tensor part_of(const std::string& file, const Region& part, ImageSize least = {},
                   bool may_shrink = false) {
  return decode_part(bytes_of(file),
                     [&](const ImageSize&) {
                       return NeededPart{part, least};
                     },
                     {.may_shrink = may_shrink});
}

std::string big_endian(std::size_t number) {
  std::string text;
  for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(number >> shift);
  return text;
}

// So many zeros, compressed.
std::string deflated(std::size_t bytes) {
  const std::string zeros(bytes, '\0');
  std::string text(compressBound(bytes), '\0');
  uLongf size = text.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(text.data()), &size,
                     reinterpret_cast<const Bytef*>(zeros.data()), bytes),
            Z_OK);
  return text.substr(0, size);
}

std::string error_of(const std::string& file) {
  return message_of<UserError>([&] { decoded(file); });
}

const std::vector<std::string> kFiles = {
    "420_19x37.jpg",      "422_19x37.jpg",  "444_19x37.jpg",   "progressive_19x37.jpg",
    "restarts_19x37.jpg", "cmyk_19x37.jpg", "gray_19x37.jpg",  "rgb_19x37.png",
    "lossy_19x37.webp",   "rgb_19x37.bmp",  "runs8_19x37.bmp", "interlaced_19x37.gif",
    "tiff_lzw_19x37.tif", "color_19x37.ppm"};

TEST(Decoder, DecodesPartsAsTheyAreInTheWhole) {
  for (const std::string& name : kFiles) {
    const std::string file = encoded_sample(name);
    const at::Tensor whole = decoded(file);
    // Among them 16 and 32, where blocks begin.
    for (int64_t top = 0; top < 19; top += 4)
      for (int64_t left = 0; left < 37; left += 4)
        for (const ImageSize size : {ImageSize{1, 1}, {2, 11}, {19 - top, 37 - left}}) {
          if (top + size.height > 19 || left + size.width > 37) continue;
          const at::Tensor part = part_of(file, {top, left, size});
          EXPECT_TRUE(at::equal(part, whole.narrow(0, top, size.height).narrow(1, left, size.width)))
              << name << " at " << top << ", " << left << " of " << size.height << " x " << size.width;
        }
  }
}

TEST(Decoder, ShrinksJpegsThatAreNeededSmaller) {
  const std::string file = encoded_sample("420_19x37.jpg");
  const Region all{0, 0, {19, 37}};
  EXPECT_EQ(part_of(file, all, {10, 18}, true).sizes(), (Shape{10, 19, 3}));
  EXPECT_EQ(part_of(file, all, {5, 9}, true).sizes(), (Shape{5, 9, 3}));
  EXPECT_EQ(part_of(file, all, {11, 18}, true).sizes(), (Shape{19, 37, 3}));
  EXPECT_EQ(part_of(file, all, {1, 1}, false).sizes(), (Shape{19, 37, 3}));
  EXPECT_EQ(part_of(file, {3, 8, {16, 16}}, {2, 2}, true).sizes(), (Shape{2, 2, 3}));
}

// The mean over 2 x 2 pixels is that of the frequencies that remain, but for those that are cut off.
TEST(Decoder, ShrinksToAboutTheMeanOfPixels) {
  const std::string file = encoded_sample("444_19x37.jpg");
  const at::Tensor half = part_of(file, {0, 0, {16, 32}}, {8, 16}, true).to(at::kFloat);
  const at::Tensor means =
      decoded(file).narrow(0, 0, 16).narrow(1, 0, 32).to(at::kFloat).reshape({8, 2, 16, 2, 3}).mean({1, 3});
  EXPECT_LT((half - means).abs().mean().item<double>(), 6);
}

TEST(Decoder, ReadsSizesFromHeaders) {
  for (const std::string& name : kFiles)
    EXPECT_EQ(encoded_size(bytes_of(encoded_sample(name))), (ImageSize{19, 37})) << name;
}

TEST(Decoder, SaysThatAFileIsTruncated) {
  for (const std::string& name : kFiles) {
    const std::string file = encoded_sample(name);
    EXPECT_THAT(error_of(file.substr(0, file.size() * 2 / 3)), HasSubstr("the file is truncated")) << name;
  }
}

// libtiff makes other colors of CIELAB than Pillow; 32803 is a raw camera's.
TEST(Decoder, ColorSpacesOfTiffThatAreNotReadAreNamed) {
  std::string file = encoded_sample("tiff_lzw_19x37.tif");
  const std::string rgb("\x06\x01\x03\0\x01\0\0\0\x02\0", 10);
  const std::size_t space = file.find(rgb) + rgb.size() - 2;
  ASSERT_GT(space, rgb.size());
  file[space] = 8;
  EXPECT_THAT(error_of(file),
              HasSubstr("no readable TIFF file: its color space is number 8, CIELAB; read are"));
  file[space] = '\x23', file[space + 1] = '\x80';
  EXPECT_THAT(error_of(file), HasSubstr("its color space is number 32803; read are"));
}

// Of gray Pillow would take 0 for white, libtiff for black.
TEST(Decoder, ATiffThatDoesNotSayWhatItsNumbersAreIsRefused) {
  std::string file = encoded_sample("tiff_lzw_19x37.tif");
  const std::size_t space = file.find(std::string("\x06\x01\x03\0\x01\0\0\0\x02\0", 10));
  ASSERT_NE(space, file.npos);
  file[space] = '\x07';  // another tag
  EXPECT_THAT(error_of(file), HasSubstr("no readable TIFF file: it has no PhotometricInterpretation, so"));
}

// As Pillow, which needs the mark at the end.
TEST(Decoder, SaysThatAJpegLacksItsEnd) {
  for (const char* name : {"420_19x37.jpg", "progressive_19x37.jpg"}) {
    const std::string file = encoded_sample(name);
    EXPECT_THAT(error_of(file.substr(0, file.size() - 2)), HasSubstr("the file is truncated")) << name;
  }
}

TEST(Decoder, SaysThatAWebPIsAnAnimation) {
  std::string file("RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0", 24);
  file += std::string("\x07\0\0\x07\0\0", 6);  // of 8 x 8 pixels
  EXPECT_THAT(error_of(file), HasSubstr("it is an animation"));
}

TEST(Decoder, SaysThatAFileIsNoImage) {
  EXPECT_THAT(error_of(""), HasSubstr("the file is empty"));
  EXPECT_THAT(error_of("PK\3\4"),
              HasSubstr("no image of a kind that is read: it begins as none of JPEG, PNG"));
}

TEST(Decoder, SaysWhatLibrariesSay) {
  std::string file = encoded_sample("rgb_19x37.png");
  file[file.size() - 13] ^= 1;  // of the last data
  EXPECT_THAT(error_of(file), HasSubstr("CRC error"));
  file = encoded_sample("420_19x37.jpg");
  const auto frame = file.find("\xFF\xC0");
  file[frame + 4] = 12;
  EXPECT_THAT(error_of(file), HasSubstr("Unsupported JPEG data precision 12"));
}

TEST(Decoder, RefusesHugeImages) {
  std::string file = encoded_sample("420_19x37.jpg");
  const auto frame = file.find("\xFF\xC0");
  file.replace(frame + 5, 4, "\x7F\xFF\x7F\xFF");
  EXPECT_THAT(error_of(file), HasSubstr("the image is 32767 x 32767 by its header"));
}

// 34 bytes of WebP's header are enough for 16383 x 16383 pixels.
TEST(Decoder, TheMostPixelsOfAnImageAreChosen) {
  const std::string file("RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\xfe\xbf\xff\x0f\x88\x88\x08\0\0\0\0\0\0", 34);
  EXPECT_THAT(error_of(file), HasSubstr("the image is 16383 x 16383 by its header; at most 89478485"));
  for (const std::string& name : kFiles) {
    const std::string image = encoded_sample(name);
    EXPECT_EQ(encoded_size(bytes_of(image), 19 * 37), (ImageSize{19, 37}));
    EXPECT_THAT(message_of<UserError>([&] { encoded_size(bytes_of(image), 19 * 37 - 1); }),
                HasSubstr("at most 702 pixels are read (max_image_pixels)"));
  }
}

// A PNG of a pixel, and more data behind it.
TEST(Decoder, DataBehindThePixelsAreNotInflated) {
  const auto chunk = [](const std::string& name, const std::string& data) {
    const auto sum =
        crc32(0, reinterpret_cast<const Bytef*>((name + data).data()), static_cast<uInt>(4 + data.size()));
    return big_endian(data.size()) + name + data + big_endian(sum);
  };
  const std::string header = big_endian(1) + big_endian(1) + std::string("\x08\0\0\0\0", 5);
  for (const auto& [pixels, is_read] :
       {std::pair(std::size_t{2}, true), {std::size_t{1} << 20, true}, {std::size_t{1} << 27, false}}) {
    const std::string file =
        "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", deflated(pixels)) + chunk("IEND", "");
    if (is_read)
      EXPECT_EQ(decoded(file).sizes(), (Shape{1, 1, 3})) << pixels;
    else
      EXPECT_THAT(error_of(file), HasSubstr("its data are more than its pixels"));
  }
}

TEST(Decoder, GrayOfSixteenBitsIsRefusedWherePillowClipsIt) {
  EXPECT_THAT(error_of("P5 2 1 65535 abcd"), HasSubstr("it has 16 bits of gray"));
}

// Files of all kinds, changed at random, are read or refused.
TEST(Decoder, RefusesJpegsOfManyScans) {
  std::string file = encoded_sample("progressive_19x37.jpg");
  const std::string end = file.substr(file.size() - 2), scan = file.substr(file.rfind("\xff\xda"));
  file.resize(file.size() - end.size());
  for (int i = 0; i < 600; ++i) file += scan.substr(0, scan.size() - end.size());
  EXPECT_THAT(error_of(file + end), HasSubstr("it has too many scans"));
}

TEST(Decoder, ReadsOrRefusesDamagedFiles) {
  for (const std::string& name : kFiles) {
    const std::string good = encoded_sample(name);
    int refused = 0;
    for (int i = 0; i < mutations(100); ++i) {
      const std::string file = Mutation(i).of(good);
      try {
        const ImageSize size = encoded_size(bytes_of(file));
        if (size.height * size.width > 1 << 20) continue;
        part_of(file, {size.height / 3, size.width / 3, {(size.height + 1) / 2, (size.width + 1) / 2}},
                {2, 2}, true);
        decoded(file);
      } catch (const UserError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 0) << name;
  }
}

}  // namespace
}  // namespace tutti
