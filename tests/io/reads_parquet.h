#pragma once

#include <filesystem>

namespace tutti {

// True if this build reads Parquet, for which it needs pyarrow.
inline bool reads_parquet() { return std::filesystem::exists(TUTTI_BUILD_DIR "/libtutti_parquet.so"); }

}  // namespace tutti
