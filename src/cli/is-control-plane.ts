import { manifestPath } from '../core/control-plane/paths.ts';
import type { Host } from '../ports/host.ts';

/** Whether the host runs an API server of its own. */
export async function isControlPlane(connect: () => Promise<Host>): Promise<boolean> {
  const host = await connect();
  try {
    const { manifest } = await host.ask({ manifest: { kind: 'file', path: manifestPath('kube-apiserver'), content: false } });
    return manifest !== null;
  } finally {
    await host.close();
  }
}
