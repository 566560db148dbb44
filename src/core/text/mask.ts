const SECRET_NAMES =
  'token|password|client-key-data|id-token|refresh-token|access-token|client-secret|secret|token-secret|certificateKey|tlsBootstrapToken';
/** A key of a YAML block or of a flow mapping (JSON too), up to where its value begins. */
const SECRET_KEY = `(?:^[ \\t]*(?:-[ \\t]+)*|[{,][ \\t]*)["']?(?:${SECRET_NAMES})["']?[ \\t]*:`;
const BLOCK_SCALAR = new RegExp(
  `^(([ \\t]*)(?:- +)*["']?(?:${SECRET_NAMES})["']?[ \\t]*:[ \\t]*)[|>].*(?:\\r?\\n(?:\\2[ \\t].*|[ \\t]*(?=\\r?\\n)))+`,
  'gim',
);
const QUOTED = new RegExp(`(${SECRET_KEY}[ \\t]*)(?:"(?:[^"\\\\]|\\\\.)*"|'(?:[^']|'')*')`, 'gim');
const PLAIN_IN_FLOW = new RegExp(`([{,][ \\t]*["']?(?:${SECRET_NAMES})["']?[ \\t]*:[ \\t]+)[^"'\\s,}[{][^,}\\n]*`, 'gi');
const PLAIN = new RegExp(`^([ \\t]*(?:-[ \\t]+)*["']?(?:${SECRET_NAMES})["']?[ \\t]*:[ \\t]*)(?!["'{[\\s]|\\[secret\\]).+$`, 'gim');

/** Replaces what looks like a secret in YAML or JSON text that was read from somewhere (a kubeconfig, a join configuration) by `[secret]`. */
export function maskSecrets(text: string): string {
  return text
    .replace(BLOCK_SCALAR, (_, key: string) => `${key}[secret]`)
    .replace(QUOTED, (_, key: string) => `${key}[secret]`)
    .replace(PLAIN_IN_FLOW, (_, key: string) => `${key}[secret]`)
    .replace(PLAIN, (_, key: string) => `${key}[secret]`)
    .replace(/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$(?![\s\S]))/g, '[secret]')
    .replace(/\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}/g, '[secret]')
    .replace(/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, '[secret]');
}
