/** CPU architectures of bundles, as Go names them. */
export const ARCHITECTURES = ['amd64', 'arm64'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** Programs that write an image to an archive: from the containerd of the local host, or from a registry. */
export const IMAGE_TOOLS = ['ctr', 'skopeo'] as const;
