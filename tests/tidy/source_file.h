#pragma once

#include <string>
#include <vector>

namespace tutti {

// A file of the source tree as the tidiness rules see it. Line i of each view is line i + 1 of the file.
struct SourceFile {
  std::string path;                // from the root: "io/recipe.cpp"
  std::vector<std::string> lines;  // as written
  std::vector<std::string> code;   // C++ without comments, strings and preprocessor lines; empty for others
  std::vector<std::string>
      includes;  // "io/recipe.h" or <vector>, with its quotes or brackets; "" on other lines
  std::vector<std::string> comments;  // the text of each line's comment
  std::vector<std::string> strings;   // the contents of each line's texts; not of #include

  bool is_cpp() const;            // .h, .cpp, .cu
  bool is_header() const;         // .h
  std::string folder() const;     // "io"; "" in the root
  std::string subfolder() const;  // of tests/io/recipe_test.cpp: "io"
  std::string file_name() const;
};

using SourceTree = std::vector<SourceFile>;

SourceFile parse_source(const std::string& path, const std::string& text);

// Every text file under `root` that the rules speak of: no build folders, no runs, nothing hidden but .ci.
SourceTree read_source_tree(const std::string& root);

}  // namespace tutti
