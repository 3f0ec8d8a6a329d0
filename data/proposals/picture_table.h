#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/proposals/proposal.h"
#include "io/tables/table_file.h"

namespace tutti {

// What the rows of a table of pictures are, beside the column of pictures.
struct PictureTarget {
  std::vector<std::string> columns;  // of targets
  bool is_named = false;             // chosen by its name or by the user, not as the only one
  int64_t classes = 0;               // 0: numbers
};

// The columns of a table that name pictures: the picture, and the mask if two columns do and the name of one
// says so. nullopt: no column does. Throws UserError if several do otherwise.
struct PictureColumns {
  std::string image, mask;
  std::string root = "";  // the folder beside the table that has the pictures; "": that of the table
};
std::optional<PictureColumns> picture_columns_of(TableFile& file);

// Lines for pictures with targets. `lines`: how the file is read. The summary begins with the rows.
Proposal picture_table(const std::string& file, const PictureColumns& pictures, const PictureTarget& target,
                       const RecipeLines& lines, int64_t rows);

// Lines for pictures and masks. `evaluated`: the table to evaluate on; "" = none.
Proposal masked_picture_table(TableFile& file, const PictureColumns& pictures, const RecipeLines& lines,
                              const std::string& evaluated);

}  // namespace tutti
