import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AGENT_DIRECTORY } from '../../src/kubelet/node-agent/agent-program.ts';
import { renderAgentUnit, renderPointerDropIn } from '../../src/kubelet/node-agent/agent-units.ts';
import { loadTemplates } from '../../src/template-files.ts';
import { manPages } from '../reference/man-pages.ts';
import { gzip, type PackagedFile } from './archive.ts';

/** Architectures as Node.js names them. */
export type Architecture = 'x64' | 'arm64';

/** A Debian or RPM package. */
export interface SystemPackage {
  readonly name: string;
  readonly version: string;
  readonly arch: Architecture;
  /** Time of all files, in seconds since 1970. */
  readonly mtime: number;
  readonly license: string;
  readonly maintainer: string;
  /** One line without a full stop. */
  readonly summary: string;
  /** Lines of at most 80 characters. */
  readonly description: string;
  readonly files: readonly PackagedFile[];
}

/** The texts of both package formats. */
export const PACKAGE_TEXTS = {
  maintainer: 'kubeletadm contributors',
  summary: 'bootstrap Kubernetes nodes and reconfigure their kubelets',
  description: `kubeletadm bootstraps Kubernetes nodes as kubeadm does, on the local host or on many
hosts over SSH, and changes their kubelet configuration at runtime, with automatic
rollback.`,
} as const;

const MAN = '/usr/share/man/man1';
const DOC = '/usr/share/doc/kubeletadm';
const SHARE = '/usr/share/kubeletadm';
/** The directory of zsh differs: Debian's has only completions of packages. */
const COMPLETIONS = {
  bash: () => '/usr/share/bash-completion/completions/kubeletadm',
  zsh: (format: 'deb' | 'rpm') =>
    format === 'deb' ? '/usr/share/zsh/vendor-completions/_kubeletadm' : '/usr/share/zsh/site-functions/_kubeletadm',
  fish: () => '/usr/share/fish/vendor_completions.d/kubeletadm.fish',
} as const;

/**
 * The files of the packages, other than the executable.
 * @param root the folder of the repository, with the built program in `dist`
 * @param version in the manual pages
 * @returns a function that gives the files of a format
 */
export async function systemFiles(root: string, version: string): Promise<(format: 'deb' | 'rpm') => readonly PackagedFile[]> {
  const run = (...argv: readonly string[]): Buffer =>
    execFileSync(process.execPath, [join(root, 'dist/kubeletadm.mjs'), ...argv], { env: {}, cwd: '/' });
  const read = (path: string): Buffer => readFileSync(join(root, path));
  const completions = Object.entries(COMPLETIONS).map(([shell, path]) => ({ path, content: run('completion', shell) }));
  const templates = await loadTemplates();
  const unit = renderAgentUnit(templates, {
    command: ['/usr/bin/kubeletadm', 'agent'],
    directory: AGENT_DIRECTORY,
    kubeletDirectory: null,
    keepsDropInDirectory: false,
  });
  const examples = filesOf(join(root, 'examples')).map((path) => [path, read(join('examples', path))] as const);
  const documents = [
    { path: `${DOC}/README.md`, content: read('README.md') },
    { path: `${DOC}/SECURITY.md`, content: read('SECURITY.md') },
    { path: `${DOC}/changelog.gz`, content: gzip(read('CHANGELOG.md')) },
    { path: `${DOC}/copyright`, content: Buffer.concat([read('LICENSE'), Buffer.from('\n'), read('dist/THIRD-PARTY-NOTICES.txt')]) },
    ...filesOf(join(root, 'docs')).map((name) => ({ path: `${DOC}/docs/${name}`, content: read(`docs/${name}`) })),
    ...filesOf(join(root, 'deploy')).map((name) => ({ path: `${DOC}/deploy/${name}`, content: read(`deploy/${name}`) })),
    ...examples.map(([name, content]) => ({ path: `${DOC}/examples/${name}`, content })),
    ...[...(await manPages(version))].map(([name, text]) => ({ path: `${MAN}/${name}.gz`, content: gzip(Buffer.from(text)) })),
  ].map((file) => ({ ...file, mode: 0o644, isDocumentation: true }));
  const units = [
    { path: `${SHARE}/kubeletadm-agent.service`, mode: 0o644, content: Buffer.from(unit) },
    { path: `${SHARE}/20-kubeletadm-agent.conf`, mode: 0o644, content: Buffer.from(renderPointerDropIn(templates, AGENT_DIRECTORY)) },
  ];
  return (format) => [...completions.map(({ path, content }) => ({ path: path(format), mode: 0o644, content })), ...units, ...documents];
}

/** Paths of the files below a directory; none if it does not exist. */
function filesOf(directory: string): readonly string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}
