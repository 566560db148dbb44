import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';

/**
 * The packages in the program, as CycloneDX JSON: those of npm, and the Node.js of executables.
 * @param mtime replaces the time of the call, in seconds since 1970; the serial number is derived from the content. So
 *   equal content gives equal bytes
 */
export function sbomOf(root: string, nodeVersion: string, mtime: number): string {
  const printed = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  });
  const { serialNumber: _, metadata, components, dependencies, ...rest } = JSON.parse(printed) as Sbom;
  // Not by --omit dev: it also omits packages that the program and development tools share.
  const included = components.filter(({ properties = [] }) => !properties.some(({ name }) => name === 'cdx:npm:package:development'));
  const refs = new Set([...included.map((each) => each['bom-ref']), metadata.component['bom-ref']]);
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
    components: [...included, node],
    dependencies: dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) })),
  };
  const hash = createHash('sha256').update(JSON.stringify(content)).digest('hex');
  const uuid = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
  return `${JSON.stringify({ ...content, serialNumber: `urn:uuid:${uuid}` }, null, 2)}\n`;
}

interface Sbom {
  readonly serialNumber: string;
  readonly metadata: { readonly component: { readonly 'bom-ref': string } };
  readonly components: readonly { readonly 'bom-ref': string; readonly properties?: readonly { readonly name: string }[] }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}
