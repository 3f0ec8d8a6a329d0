#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images/image_size.h"

// The decoders behind data/images/decoder.h. All throw UserError, without the file's name.
namespace tutti {

using FileBytes = std::span<const std::byte>;

// A part of an image at 1 / `shrink` of its size. Its edges are the part's edges, divided and rounded.
struct ScaledPart {
  Region part;         // of the whole image
  int64_t shrink = 1;  // 1, 2, 4 or 8

  Region scaled() const;  // of the image at 1 / shrink
};

ImageSize jpeg_size(FileBytes file);
// Writes part.scaled() to `pixels`: uint8 [height, width, 3].
void decode_jpeg(FileBytes file, const ScaledPart& part, uint8_t* pixels);

ImageSize png_size(FileBytes file);
// This and the following write the whole image of `size`: uint8 [height, width, 3].
void decode_png(FileBytes file, const ImageSize& size, uint8_t* pixels);

// Of gray or of a palette, of at most 8 bits: the values as stored, uint8 [height, width].
void decode_png_values(FileBytes file, uint8_t* values);

ImageSize webp_size(FileBytes file);
void decode_webp(FileBytes file, const ImageSize& size, uint8_t* pixels);

ImageSize bmp_size(FileBytes file);
void decode_bmp(FileBytes file, const ImageSize& size, uint8_t* pixels);

ImageSize gif_size(FileBytes file);
void decode_gif(FileBytes file, const ImageSize& size, uint8_t* pixels);  // the first frame on its canvas

// Of 8 bits a sample, as seen: turned as the file says.
ImageSize tiff_size(FileBytes file);
void decode_tiff(FileBytes file, const ImageSize& size, uint8_t* pixels);

// PPM, PGM and PBM.
ImageSize pnm_size(FileBytes file);
void decode_pnm(FileBytes file, const ImageSize& size, uint8_t* pixels);

}  // namespace tutti
