# find_package(tutti): tutti::tutti is libtutti.so with its headers and its libtorch. Version 0.2 may break
# 0.1.
include(CMakePackageConfigHelpers)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tuttiConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/tuttiConfig.cmake INSTALL_DESTINATION lib/cmake/tutti)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tuttiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tuttiConfig.cmake ${CMAKE_BINARY_DIR}/tuttiConfigVersion.cmake
        DESTINATION lib/cmake/tutti)
