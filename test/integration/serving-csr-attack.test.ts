import { startApiServer } from '../../lab/api-server/server.ts';
import { servingCsrAttack } from '../support/serving-csr-attack.ts';

const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kubernetes', namespace: 'default' },
  spec: { clusterIP: '10.96.0.1', ports: [{ port: 443, protocol: 'TCP' }] },
};

servingCsrAttack('csr approve against the API server double', async () => {
  const server = await startApiServer({ controllers: ['csr-signer'] });
  server.put(SERVICE);
  return server;
});
