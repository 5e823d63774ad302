"""What people see: tables and words made from rows and audits."""
