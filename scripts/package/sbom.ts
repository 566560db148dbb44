import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';

/**
 * The packages in the program, as CycloneDX JSON: those of npm, and the Node.js of executables.
 * @param mtime replaces the time of the call, in seconds since 1970; the serial number is derived from the content. So
 *   equal content gives equal bytes
 */
export function sbomOf(root: string, nodeVersion: string, mtime: number): string {
  const printed = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  });
  const { serialNumber: _, metadata, components, ...rest } = JSON.parse(printed) as Sbom;
  const node = {
    'bom-ref': `node@${nodeVersion}`,
    type: 'platform',
    name: 'node',
    version: nodeVersion,
    description: 'embedded in executables, system packages and the image',
    licenses: [{ license: { id: 'MIT' } }],
    purl: `pkg:generic/node@${nodeVersion}`,
  };
  const content = {
    ...rest,
    metadata: { ...metadata, timestamp: new Date(mtime * 1000).toISOString() },
    components: [...components, node],
  };
  const hash = createHash('sha256').update(JSON.stringify(content)).digest('hex');
  const uuid = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
  return `${JSON.stringify({ ...content, serialNumber: `urn:uuid:${uuid}` }, null, 2)}\n`;
}

interface Sbom {
  readonly serialNumber: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly components: readonly unknown[];
}
