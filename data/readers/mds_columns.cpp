#include "data/readers/mds_columns.h"

#include <ATen/ATen.h>
#include <c10/util/Half.h>

#include <cstring>
#include <limits>

#include "runtime/error.h"
#include "runtime/printable.h"
#include "tensors/tree.h"

namespace tutti {
namespace {

using Form = MdsEncoding::Form;

int64_t channels_of(const std::string& mode) {
  if (mode == "1" || mode == "L") return 1;
  if (mode == "LA") return 2;
  if (mode == "RGB") return 3;
  if (mode == "RGBA" || mode == "CMYK") return 4;
  throw UserError("is an image of Pillow's mode '" + shown(mode) +
                  "'; read are 1, L, LA, RGB, RGBA and CMYK");
}

ImageSize size_of(const MdsPixels& pixels, int64_t most_pixels) {
  const int64_t channels = channels_of(pixels.mode);
  if (pixels.width < 1 || pixels.height < 1 || pixels.width > most_pixels / pixels.height)
    throw UserError("is damaged, or too large: an image of " + std::to_string(pixels.width) + " x " +
                    std::to_string(pixels.height) + " pixels (max_image_pixels)");
  const int64_t row = pixels.mode == "1" ? (pixels.width + 7) / 8 : channels * pixels.width;
  if (row * pixels.height != std::ssize(pixels.bytes))
    throw UserError("is damaged: an image of " + std::to_string(pixels.width) + " x " +
                    std::to_string(pixels.height) + " pixels in " + std::to_string(pixels.bytes.size()) +
                    " bytes");
  return {pixels.height, pixels.width};
}

at::Tensor bytes_tensor(MdsBytes bytes, at::IntArrayRef shape) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()), shape, at::kByte);  // only read
}

// A bit a pixel, the highest first, rows in whole bytes.
at::Tensor bits_to_bytes(const MdsPixels& pixels) {
  const at::Tensor packed = bytes_tensor(pixels.bytes, {pixels.height, (pixels.width + 7) / 8, 1});
  const at::Tensor bits = at::tensor({128, 64, 32, 16, 8, 4, 2, 1}, at::kByte);
  return packed.bitwise_and(bits)
      .ne(0)
      .to(at::kByte)
      .mul(255)
      .flatten(1)
      .narrow(1, 0, pixels.width)
      .unsqueeze(2);
}

// As Pillow's Convert.c: 255 - ink, each times the rest of black, rounded as its MULDIV255.
at::Tensor cmyk_to_rgb(const at::Tensor& cmyk) {
  const at::Tensor rest = 255 - cmyk.narrow(2, 3, 1).to(at::kInt);
  const at::Tensor product = cmyk.narrow(2, 0, 3).to(at::kInt) * rest + 128;
  return (rest - (product.bitwise_right_shift(8) + product).bitwise_right_shift(8))
      .clamp(0, 255)
      .to(at::kByte);
}

at::Tensor rgb_of(const MdsPixels& pixels, int64_t most_pixels) {
  const ImageSize size = size_of(pixels, most_pixels);
  if (pixels.mode == "1") return bits_to_bytes(pixels).expand({-1, -1, 3}).contiguous();
  const at::Tensor image = bytes_tensor(pixels.bytes, {size.height, size.width, channels_of(pixels.mode)});
  if (pixels.mode == "CMYK") return cmyk_to_rgb(image);
  if (image.size(2) < 3) return image.narrow(2, 0, 1).expand({-1, -1, 3}).contiguous();
  return image.narrow(2, 0, 3).clone(at::MemoryFormat::Contiguous);
}

template <class From, class To>
void convert(const std::byte* from, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    const auto converted = static_cast<To>(value);
    std::memcpy(to + i * sizeof converted, &converted, sizeof converted);
  }
}

// Unsigned integers of 64 bits that int64 does not have are an error.
void require_int64(const std::byte* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    int64_t value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    if (value < 0) throw UserError("has an integer beyond int64");
  }
}

template <class To>
void convert_to(MdsNumber type, const std::byte* from, std::size_t count, std::byte* to) {
  switch (type) {
    case MdsNumber::kUint8:
      return convert<uint8_t, To>(from, count, to);
    case MdsNumber::kInt8:
      return convert<int8_t, To>(from, count, to);
    case MdsNumber::kUint16:
      return convert<uint16_t, To>(from, count, to);
    case MdsNumber::kInt16:
      return convert<int16_t, To>(from, count, to);
    case MdsNumber::kFloat16:
      return convert<c10::Half, To>(from, count, to);
    case MdsNumber::kUint32:
      return convert<uint32_t, To>(from, count, to);
    case MdsNumber::kInt32:
      return convert<int32_t, To>(from, count, to);
    case MdsNumber::kFloat32:
      return convert<float, To>(from, count, to);
    case MdsNumber::kFloat64:
      return convert<double, To>(from, count, to);
    case MdsNumber::kUint64:
      require_int64(from, count);
      [[fallthrough]];
    case MdsNumber::kInt64:
      return convert<int64_t, To>(from, count, to);
  }
}

}  // namespace

bool is_image(const MdsEncoding& encoding, MdsBytes value) {
  return encoding.form == Form::kImageFile || encoding.form == Form::kPixels ||
         (encoding.form == Form::kBytes && begins_as_image(value));
}

at::Tensor mds_image(const MdsEncoding& encoding, MdsBytes value, const ChoosePart& choose,
                     const Decoding& decoding) {
  if (encoding.form != Form::kPixels && encoding.form != Form::kPixelsList)
    return decode_part(value, choose, decoding);
  const at::Tensor whole = rgb_of(mds_pixels(value), decoding.most_pixels);
  const Region part = choose({whole.size(0), whole.size(1)}).part;
  return whole.narrow(0, part.top, part.size.height).narrow(1, part.left, part.size.width).contiguous();
}

at::Tensor mds_image(const MdsEncoding& encoding, MdsBytes value, int64_t most_pixels) {
  return mds_image(encoding, value,
                   [](const ImageSize& size) {
                     return NeededPart{{0, 0, size}, size};
                   },
                   {.most_pixels = most_pixels});
}

ImageSize mds_image_size(const MdsEncoding& encoding, MdsBytes value, int64_t most_pixels) {
  return encoding.form == Form::kPixels ? size_of(mds_pixels(value), most_pixels)
                                        : encoded_size(value, most_pixels);
}

struct MdsArrayColumn::Numbers {
  MdsNumber type = MdsNumber::kUint8;
  Shape shape = {};
  MdsBytes bytes = {};
  at::Tensor owner = {};  // of the bytes, if they are not in the shard

  static Numbers of(MdsNumber type, Shape shape, at::Tensor owner) {
    const MdsBytes bytes{static_cast<const std::byte*>(owner.data_ptr()), owner.nbytes()};
    return {type, std::move(shape), bytes, std::move(owner)};
  }
};

MdsArrayColumn::MdsArrayColumn(const MdsEncoding& encoding, MdsBytes first, const Use& use)
    : encoding_(encoding), use_(use), is_image_(is_image(encoding, first)) {
  const Numbers numbers = this->numbers(first);
  shape_ = numbers.shape;
  const bool are_bytes =
      numbers.type == MdsNumber::kUint8 && !use.is_target && encoding.form != Form::kNumber;
  dtype_ = is_float(numbers.type) ? at::kFloat : are_bytes ? at::kByte : at::kLong;
}

std::size_t MdsArrayColumn::row_bytes() const {
  std::size_t bytes = at::elementSize(dtype_);
  for (const int64_t edge : shape_) bytes *= static_cast<std::size_t>(edge);
  return bytes;
}

MdsArrayColumn::Numbers MdsArrayColumn::images(MdsBytes value) const {
  std::vector<at::Tensor> images;
  for (const MdsBytes element : mds_list(encoding_, value)) {
    images.push_back(mds_image(encoding_, element, use_.most_pixels));
    if (!images[0].sizes().equals(images.back().sizes()))
      throw UserError("its images differ in size, which lists of images must not");
  }
  if (images.empty()) throw UserError("has no images");
  at::Tensor all = at::stack(images);
  return Numbers::of(MdsNumber::kUint8, all.sizes().vec(), all);
}

MdsArrayColumn::Numbers MdsArrayColumn::numbers(MdsBytes value) const {
  if (is_image_) {
    at::Tensor image = mds_image(encoding_, value, use_.most_pixels);
    return Numbers::of(MdsNumber::kUint8, image.sizes().vec(), image);
  }
  switch (encoding_.form) {
    case Form::kBytes: {
      const auto bytes = static_cast<std::size_t>(bytes_of(use_.bytes_are));
      if (value.size() % bytes != 0)
        throw UserError("its " + std::to_string(value.size()) + " bytes are no whole numbers of " +
                        std::to_string(bytes) + " bytes; dtype says which numbers are in columns of bytes");
      return {use_.bytes_are, {static_cast<int64_t>(value.size() / bytes)}, value};
    }
    case Form::kNumber:
      if (std::ssize(value) != bytes_of(*encoding_.type)) throw UserError("is damaged: a number's size");
      return {*encoding_.type, {}, value};
    case Form::kArray: {
      const MdsArray array = mds_array(encoding_, value);
      return {array.type, array.shape, array.bytes};
    }
    case Form::kTextInteger:
      return Numbers::of(MdsNumber::kInt64, {}, at::full({1}, mds_text_integer(value), at::kLong));
    case Form::kTextFloat:
      return Numbers::of(MdsNumber::kFloat64, {}, at::full({1}, mds_text_float(value), at::kDouble));
    case Form::kImageFiles:
    case Form::kPixelsList:
      return images(value);
    case Form::kJson: {
      const MdsJsonNumbers json = mds_json_numbers(value);
      const at::Tensor values = at::tensor(json.values, at::kDouble);
      return json.are_integers ? Numbers::of(MdsNumber::kInt64, json.shape, values.to(at::kLong))
                               : Numbers::of(MdsNumber::kFloat64, json.shape, values);
    }
    default:
      throw UserError("is text, which only a target may be, whose classes the texts are");
  }
}

void MdsArrayColumn::write(MdsBytes value, std::byte* row) const {
  const Numbers numbers = this->numbers(value);
  if (numbers.shape != shape_)
    throw UserError("is " + shape_text(numbers.shape) + ", and " + shape_text(shape_) + " in sample 0");
  if (is_float(numbers.type) && dtype_ != at::kFloat) throw UserError("is no integer, as it is in sample 0");
  const auto count = numbers.bytes.size() / static_cast<std::size_t>(bytes_of(numbers.type));
  if (dtype_ == at::kByte) {
    if (numbers.type != MdsNumber::kUint8) throw UserError("is no uint8, as it is in sample 0");
    std::memcpy(row, numbers.bytes.data(), count);
  } else if (dtype_ == at::kFloat) {
    convert_to<float>(numbers.type, numbers.bytes.data(), count, row);
  } else {
    convert_to<int64_t>(numbers.type, numbers.bytes.data(), count, row);
  }
}

}  // namespace tutti
