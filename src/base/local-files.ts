/** A file below a directory; `path` is relative to it, with `/`. */
export interface TreeFile {
  readonly path: string;
  readonly text: string;
}

/** Local files named on the command line, and typed secrets. Errors of files are AppError INPUT_*, exit code 2. */
export interface InputFiles {
  /** `-` is standard input. Bytes that are not UTF-8 become U+FFFD, which readers reject. */
  readText(path: string): Promise<string>;
  /**
   * All files below a directory in lexical order. A symbolic link as the directory is rejected, as kubeadm
   * does.
   * @param isDesired other files are listed without being read, with an empty text
   */
  readTree(directory: string, isDesired: (path: string) => boolean): Promise<readonly TreeFile[]>;
  exists(path: string): Promise<boolean>;
  /** Follows links. */
  isDirectory(path: string): Promise<boolean>;
  /** Does not show the typed characters; null without a terminal. @throws AppError INTERRUPTED (130) after Ctrl-C */
  askSecret(prompt: string): Promise<string | null>;
}

/** Files and environment variables of the local user. */
export interface LocalFiles {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly input: InputFiles;
  /** Unknown and duplicate fields of a kubeadm configuration are warnings, as in kubeadm. Absent: errors. */
  readonly acceptsUnknownFields?: boolean;
  /** The absolute path of a path relative to the working directory. */
  absolutePath(path: string): string;
  /**
   * Writes a local file atomically; a new file is readable by its owner only.
   * @param options.isPrivate also a file that exists
   * @param options.isEdited an existing file, also of another user or behind a link, keeps its access and the link
   */
  writeLocalFile(path: string, text: string, options?: { readonly isPrivate?: boolean; readonly isEdited?: boolean }): Promise<void>;
  /** Checks that writeLocalFile could write a file now, without changing the file. */
  requireWritable(path: string, options?: { readonly isEdited?: boolean }): Promise<void>;
}
