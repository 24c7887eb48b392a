# Package Gradus: the compiler `gradus`, its headers and run-time library, and derivatives as sources of targets.
#
#   find_package(Gradus REQUIRED)
#   gradus_differentiate(TARGET FUNCTION f... SOURCE f.c... [WRT x...] [INACTIVE y...] [MODE reverse|forward]
#                        [NAME symbol] [HEADER name.h] [WIDTH n] [WITH_PRIMAL] [OPTIONS option...] [COMPILE_OPTIONS flag...])
#
# The object replaces the sources in TARGET; the header HEADER (FUNCTION.h, for the first function) is in the
# target's include path. The
# include directories, definitions and options of TARGET apply to the sources. `gradus help grad` explains the words.
# Imported target Gradus::runtime: the headers and the run-time library, for objects with parallel derivatives.

get_filename_component(_gradus_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(GRADUS_PREFIX "${_gradus_prefix}" CACHE INTERNAL "Folder of the installation of Gradus")
set(GRADUS_EXECUTABLE "${_gradus_prefix}/bin/gradus" CACHE INTERNAL "The compiler of derivatives")
if(NOT EXISTS "${GRADUS_EXECUTABLE}")
  set(Gradus_FOUND FALSE)
  set(Gradus_NOT_FOUND_MESSAGE "no program `gradus` is in ${_gradus_prefix}/bin: install Gradus again")
  return()
endif()

if(NOT TARGET Gradus::runtime)
  add_library(Gradus::runtime STATIC IMPORTED)
  set_target_properties(Gradus::runtime PROPERTIES
    IMPORTED_LOCATION "${_gradus_prefix}/lib/libgradus_rt.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_gradus_prefix}/include/gradus"
    INTERFACE_LINK_LIBRARIES "m;pthread;${CMAKE_DL_LIBS};gcc_s"
    INTERFACE_LINK_OPTIONS "@WRAP_OPTIONS@")
endif()

function(gradus_differentiate target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WITH_PRIMAL" "MODE;NAME;WIDTH;HEADER" "FUNCTION;SOURCE;WRT;INACTIVE;OPTIONS;COMPILE_OPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "gradus_differentiate: unknown or empty: ${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "gradus_differentiate: no target `${target}`: call add_executable or add_library before")
  endif()
  if(NOT arg_FUNCTION OR NOT arg_SOURCE)
    message(FATAL_ERROR "gradus_differentiate: FUNCTION and SOURCE are required")
  endif()
  set(options ${arg_OPTIONS})
  foreach(function IN LISTS arg_FUNCTION)
    list(APPEND options -f "${function}")
  endforeach()
  foreach(pair "WRT --wrt" "INACTIVE --inactive" "MODE --mode" "NAME --name" "WIDTH --width")
    separate_arguments(pair)
    list(GET pair 0 word)
    list(GET pair 1 option)
    if(arg_${word})
      list(JOIN arg_${word} "," value)
      list(APPEND options ${option} "${value}")
    endif()
  endforeach()
  if(arg_WITH_PRIMAL)
    list(APPEND options --with-primal)
  endif()

  set(sources)
  foreach(source IN LISTS arg_SOURCE)
    get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    get_source_file_property(generated "${source}" GENERATED)
    if(NOT generated AND NOT EXISTS "${source}")
      message(FATAL_ERROR "gradus_differentiate: no source ${source}")
    endif()
    list(APPEND sources "${source}")
  endforeach()
  if(arg_HEADER)
    # The header is beside the object, under the object's name.
    if(NOT arg_HEADER MATCHES "^[^/]+\\.h$")
      message(FATAL_ERROR "gradus_differentiate: HEADER is a file name that ends with .h")
    endif()
    string(REGEX REPLACE "\\.h$" "" stem "${arg_HEADER}")
  else()
    list(GET arg_FUNCTION 0 stem)
    string(MAKE_C_IDENTIFIER "${stem}" stem)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/gradus/${target}")
  if(CMAKE_CONFIGURATION_TYPES)
    string(APPEND folder "/$<CONFIG>")
  endif()
  set(object "${folder}/${stem}.o")
  set(depfile)
  list(LENGTH sources count)
  set(listed)
  if(count EQUAL 1 AND sources MATCHES "\\.(c|cc|cpp|cxx|C)$" AND NOT CMAKE_CONFIGURATION_TYPES)
    set(list "${folder}/${stem}.d")
    set(depfile DEPFILE "${list}")
    set(listed -MD -MF "${list}" -MQ "${object}")
  endif()
  set(includes "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  set(flags "$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>")
  set(standard)
  if(sources MATCHES "\\.(cc|cpp|cxx|C)$" AND CMAKE_CXX_STANDARD)
    set(standard "-std=gnu++${CMAKE_CXX_STANDARD}")
  elseif(sources MATCHES "\\.c$" AND CMAKE_C_STANDARD)
    set(standard "-std=gnu${CMAKE_C_STANDARD}")
  endif()
  add_custom_command(OUTPUT "${object}" "${folder}/${stem}.h"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
    COMMAND "${GRADUS_EXECUTABLE}" grad ${sources} ${options} -o "${object}" --
      -fPIC "$<$<CONFIG:Debug>:-g>" "$<$<CONFIG:Release>:-O3;-DNDEBUG>" "$<$<CONFIG:RelWithDebInfo>:-O2;-g;-DNDEBUG>"
      ${standard} "$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>"
      "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>" "${flags}" ${arg_COMPILE_OPTIONS} ${listed}
    DEPENDS ${sources} "${GRADUS_EXECUTABLE}" ${depfile}
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Differentiating ${arg_FUNCTION}")
  target_sources(${target} PRIVATE "${object}" "${folder}/${stem}.h")
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  target_include_directories(${target} PRIVATE "${folder}" "${GRADUS_PREFIX}/include/gradus")
endfunction()
